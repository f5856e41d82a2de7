use std::path::Path;

use leasehold::Wait;
use leasehold_agent::{Agent, Policy, Systemd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::StoreArgs;
use crate::choice::{Purpose, choose, close};
use crate::exit::Failure;
use crate::password::read_trusted;
use crate::report::Report;
use crate::signals::Signals;
use crate::store_commands::AgentArgs;

/// `leasehold agent`: serves the processes of this host until a signal ends it. Returns the exit code.
pub(crate) async fn agent(args: &AgentArgs, store: &StoreArgs, report: Report) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let policy = args.policy.as_deref().map_or_else(|| Ok(Policy::open()), read_policy)?;
    let systemd = Systemd::of_this_process().map_err(Failure::System)?;
    let choice = choose(store)?;
    choice.tell_of_default(report);
    let locks = signals.or(choice.connect_within(Purpose::Lock, Wait::Forever, report)).await??;
    let agent = Agent::new(locks.clone(), choice.address.public(), policy, systemd);
    agent.warnings().iter().for_each(|warning| report.warn(warning));
    raise_limit_of_files();
    let told_to_end = async {
        signals.next_that_ends().await;
    };
    let handed_over = agent.run(&args.socket, told_to_end).await.map_err(|cause| {
        let what = format!("cannot serve at {}", args.socket.display());
        Failure::Agent { what, cause }
    })?;
    close(&locks).await;
    if handed_over > 0 {
        report.note(&format!("{handed_over} connections go on with the next process"));
    }
    Ok(0)
}

/// A client takes two descriptors, and a process may have 1024 of them unless it asks for more.
fn raise_limit_of_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, fewer clients are served.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn read_policy(path: &Path) -> Result<Policy, Failure> {
    let refused = |cause| Failure::Agent { what: format!("cannot take the policy from {}", path.display()), cause };
    let text = read_trusted(path, "name a file").map_err(refused)?;
    Policy::parse(&text).map_err(|why| refused(std::io::Error::other(why)))
}
