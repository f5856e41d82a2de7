//! The resource that the locks protect: registers, and what clients leave for each other. Clients ask it over TCP.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use leasehold_chaos::register::{Answer, Register};

use crate::wire::{Reply, Request};

/// It serves until the process ends.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    registers: HashMap<String, Register>,
    offers: VecDeque<Offer>,
    /// What clients did to themselves, and how often.
    pub(crate) proofs: BTreeMap<String, u64>,
    pub(crate) complaints: Vec<String>,
    pub(crate) refused_writes: u64,
}

/// A detached lock. It goes to two clients, of which one may get it.
#[derive(Debug)]
struct Offer {
    from: u32,
    taken_by: Option<u32>,
    text: String,
}

impl Resource {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let resource = Self { port: listener.local_addr()?.port(), state: Arc::default() };
        let serving = resource.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let serving = serving.clone();
                // Ends with the client.
                thread::spawn(move || serving.serve(client));
            }
        });
        Ok(resource)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut replies = client.try_clone()?;
        for line in BufReader::new(client).lines() {
            let request = serde_json::from_str(&line?)?;
            let reply = self.state().answer(request);
            let mut line = serde_json::to_vec(&reply)?;
            line.push(b'\n');
            replies.write_all(&line)?;
        }
        Ok(())
    }
}

impl State {
    fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Ask { register, token, writes } => {
                let answer = self.registers.entry(register).or_default().ask(token, writes);
                self.refused_writes += u64::from(writes.is_some() && answer == Answer::Refused);
                Reply::Answer(answer)
            }
            Request::Offer { client, text } => {
                self.offers.push_back(Offer { from: client, taken_by: None, text });
                Reply::Nothing
            }
            Request::Take { client } => {
                let is_for = |offer: &Offer| offer.from != client && offer.taken_by != Some(client);
                let Some(at) = self.offers.iter().position(is_for) else { return Reply::Nothing };
                let offer = &mut self.offers[at];
                let text = offer.text.clone();
                if offer.taken_by.replace(client).is_some() {
                    self.offers.remove(at);
                }
                Reply::Taken { text }
            }
            Request::Proof { fault } => {
                *self.proofs.entry(fault).or_default() += 1;
                Reply::Nothing
            }
            Request::Complaint { text } => {
                self.complaints.push(text);
                Reply::Nothing
            }
        }
    }
}
