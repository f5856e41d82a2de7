use std::io::IsTerminal;

use leasehold_agent::{Access, Begin, End, Refusal, Request, Stop, serve};
use rustix::process::Signal;
use tokio::io::{AsyncWriteExt, stdin, stdout};

use crate::args::StoreArgs;
use crate::choice::{Purpose, choose, close};
use crate::duration::millis;
use crate::exit::{Codes, Failure, USAGE, of_signal};
use crate::report::Report;
use crate::signals::Signals;
use crate::store_commands::HoldArgs;
use crate::wording::default_label;

/// `leasehold hold`: serves one client on standard input and output. Returns the exit code.
pub(crate) async fn hold(args: &HoldArgs, store: &StoreArgs, codes: Codes, report: Report) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let choice = choose(store)?;
    choice.tell_of_default(report);
    let locks = match signals.or(choice.connect(Purpose::Lock)).await? {
        Ok(locks) => locks,
        Err(error) => {
            let kind = error.kind();
            refuse(&error.into()).await;
            return Ok(codes.of(kind));
        }
    };
    let begin = args.request().map_or(Begin::Ask, |request| Begin::With(Box::new(request)));
    let label = |request: &mut Request| {
        request.label.get_or_insert_with(default_label);
        Ok(())
    };
    let mut ended_by = None;
    let stop = async {
        ended_by = Some(told_to_release(&mut signals).await);
        Stop::Release
    };
    let end = serve((stdin(), stdout()), begin, &locks, label, stop).await;
    if let End::Steps(..) = end {
        refuse(&Refusal::usage("the steps of a backend are for an agent: see leasehold agent")).await;
    }
    close(&locks).await;
    Ok(ended_by.map_or_else(|| exit_code(&end, codes), |signal| of_signal(signal.as_raw())))
}

/// Waits for a signal that is for this program. Those of a terminal go to its client, too, which goes on until it has cleaned up,
/// and ends the input then.
async fn told_to_release(signals: &mut Signals) -> Signal {
    const OF_A_TERMINAL: [Signal; 3] = [Signal::INT, Signal::QUIT, Signal::HUP];
    let is_typed = std::io::stdin().is_terminal();
    loop {
        let signal = signals.next_that_ends().await;
        if is_typed || !OF_A_TERMINAL.contains(&signal) {
            return signal;
        }
    }
}

impl HoldArgs {
    /// What the command line asks for.
    fn request(&self) -> Option<Request> {
        let wait = if self.nonblock { Some(0) } else { self.wait.map(millis) };
        self.key.clone().map(|key| Request {
            lock: Some(key),
            mode: if self.shared { Access::Read } else { Access::Write },
            permits: self.permits,
            wait_ms: wait,
            ttl_ms: self.ttl.map(millis),
            reason: self.texts.reason.clone(),
            label: self.texts.label.clone(),
            ..Request::default()
        })
    }
}

fn exit_code(end: &End, codes: Codes) -> u8 {
    match end {
        End::Closed | End::Released | End::Suspended(_) => 0,
        End::Busy(_) => codes.conflict,
        End::Lost(_) => codes.lost,
        End::Refused(refusal) => refusal.kind.map_or(USAGE, |kind| codes.of(kind)),
        End::Steps(..) => USAGE,
    }
}

/// Tells the client that there is no store.
async fn refuse(refusal: &Refusal) {
    let mut output = stdout();
    // An error could be told to the client only.
    let _ = output.write_all(&refusal.at_the_door()).await;
    let _ = output.flush().await;
}
