//! What is compared on etcd: a floor, the lock that the server itself has, and the program `etcdctl`.

use std::process::Stdio;

use prost::Message;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::load::{Contender, Key, Result};

/// What is sent is so small that one message of the fields in use stands for all: each is a name, a value, or an id.
#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// The count of what was deleted, or the number of a lease, is behind the header.
#[derive(Clone, PartialEq, Message)]
struct Count {
    #[prost(int64, tag = "2")]
    number: i64,
}

#[derive(Clone, PartialEq, Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

/// As many seconds as no run takes. A number alone is the message whose first field it is.
const LEASE: i64 = 3_600;

pub(crate) async fn connect(url: &str) -> Result<Channel> {
    let endpoint = Channel::from_shared(url.replacen("etcd:", "http:", 1))?.tcp_nodelay(true);
    Ok(endpoint.connect().await?)
}

async fn ask<Q: Message + 'static, A: Message + Default + 'static>(
    channel: &Channel,
    path: &'static str,
    message: Q,
) -> Result<A> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await?;
    let codec = ProstCodec::<Q, A>::default();
    Ok(grpc.unary(Request::new(message), PathAndQuery::from_static(path), codec).await?.into_inner())
}

/// A put of a name, and its deletion: two writes, and nothing else.
pub(crate) struct Puts(pub(crate) Channel);

impl Contender for Puts {
    type Held = ();

    async fn acquire(&self, key: &Key) -> Result<()> {
        let put = Named { name: key.name.as_str().into(), value: b"1".to_vec() };
        ask(&self.0, "/etcdserverpb.KV/Put", put).await
    }

    async fn release(&self, key: &Key, _held: ()) -> Result<()> {
        let put = Named { name: key.name.as_str().into(), value: Vec::new() };
        let deleted: Count = ask(&self.0, "/etcdserverpb.KV/DeleteRange", put).await?;
        if deleted.number == 1 { Ok(()) } else { Err("what was put is not there".into()) }
    }
}

/// The lock service of the server: a mutex of its package `concurrency`, with a lease for each who wants it.
pub(crate) struct Served {
    channel: Channel,
    leases: Mutex<Vec<i64>>,
}

impl Served {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        Ok(Self { channel: connect(url).await?, leases: Mutex::default() })
    }

    async fn lease(&self) -> Result<i64> {
        if let Some(lease) = self.leases.lock().await.pop() {
            return Ok(lease);
        }
        let granted: Count = ask(&self.channel, "/etcdserverpb.Lease/LeaseGrant", LEASE).await?;
        Ok(granted.number)
    }
}

impl Contender for Served {
    type Held = (Vec<u8>, i64);

    async fn acquire(&self, key: &Key) -> Result<(Vec<u8>, i64)> {
        let lease = self.lease().await?;
        let wanted = LockRequest { name: key.name.as_str().into(), lease };
        let locked: Named = ask(&self.channel, "/v3lockpb.Lock/Lock", wanted).await?;
        Ok((locked.value, lease))
    }

    async fn release(&self, _key: &Key, (name, lease): (Vec<u8>, i64)) -> Result<()> {
        let () = ask(&self.channel, "/v3lockpb.Lock/Unlock", Named { name, value: Vec::new() }).await?;
        self.leases.lock().await.push(lease);
        Ok(())
    }
}

/// A process `etcdctl lock` for each lock, which says that it has it, and gives it back when it is interrupted.
pub(crate) struct Processes(pub(crate) String);

impl Contender for Processes {
    type Held = Child;

    async fn acquire(&self, key: &Key) -> Result<Child> {
        let (mut command, name) = (Command::new("etcdctl"), key.name.as_str());
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.0, "lock", name]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let output = child.stdout.take().ok_or("etcdctl has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await?;
        if line.starts_with(name) { Ok(child) } else { Err(format!("etcdctl lock says {line:?}").into()) }
    }

    async fn release(&self, _key: &Key, mut held: Child) -> Result<()> {
        let id = held.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or("etcdctl has ended before")?;
        kill_process(id, Signal::INT)?;
        held.wait().await?;
        Ok(())
    }
}
