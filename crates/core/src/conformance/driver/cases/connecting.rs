//! Connections that are not made.

use std::time::Duration;

use tokio::time::timeout;

use crate::ErrorKind;
use crate::conformance::driver::rig::Unable;
use crate::conformance::driver::stage::{Stage, Verdict, is, take, works};

pub(super) async fn a_server_that_is_not_there_is_told_by_its_address(mut stage: Stage) -> Verdict {
    let url = stage.server.url();
    stage.server.kill().await?;
    let error = stage.refused(&url).await?;
    is(&error, ErrorKind::Unavailable, &[&format!("127.0.0.1:{}", stage.server.port())])?;
    stage.server.restart().await?;
    works(&stage.near().await?).await
}

pub(super) async fn a_connection_that_is_closed_at_once_is_told(stage: Stage) -> Verdict {
    let url = stage.proxy.url(&stage.server.url());
    stage.proxy.refuse(true);
    let error = stage.refused(&url).await?;
    is(&error, ErrorKind::Unavailable, &[&format!("127.0.0.1:{}", stage.proxy.port())])?;
    stage.proxy.refuse(false);
    let locks = stage.connect(&url).await?;
    works(&locks).await
}

pub(super) async fn connecting_to_a_silent_server_ends(stage: Stage) -> Verdict {
    let url = stage.proxy.url(&stage.server.url());
    stage.server.pause()?;
    let error = stage.refused(&url).await?;
    is(&error, ErrorKind::Unavailable, &[])?;
    stage.server.resume()?;
    stage.nobody_is_connected().await?;
    let locks = stage.connect(&url).await?;
    works(&locks).await
}

pub(super) async fn connecting_that_is_given_up_leaves_nothing(stage: Stage) -> Verdict {
    stage.proxy.delay(Duration::from_millis(10));
    for patience in (0..200).step_by(10) {
        drop(timeout(Duration::from_millis(patience), stage.far()).await);
    }
    stage.nobody_is_connected().await
}

pub(super) async fn a_wrong_password_is_told_and_not_shown(mut stage: Stage) -> Verdict {
    let right = stage.server.login().await?;
    let wrong = right.replace("hunter2%2F", "wrong%2F");
    if wrong == right {
        return Err(Unable::Failed("the URL has no password".to_owned()));
    }
    let error = stage.refused(&wrong).await?;
    is(&error, ErrorKind::Backend, &["password"])?;
    let guard = take(&stage.connect(&right).await?, "k").await?;
    guard.release().await?;
    Ok(())
}
