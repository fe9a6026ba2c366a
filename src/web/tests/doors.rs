//! How a login ends.

use std::time::Instant;

use super::*;
use crate::hub::Login;
use crate::web::doors::{Ask, Doors, Outside, Pass};

async fn entered(hub: &FakeHub, now: Instant) -> (Doors, Pass) {
    let login = Login::new(environment(hub, &[]).login().unwrap()).unwrap();
    let doors = Doors::new(login);
    let begun = doors.login.begin();
    let session = Some("s1".to_owned());
    let name = doors.enter("code-of-alice.1".to_owned(), begun.verifier, session.clone(), now).await.unwrap();
    (doors, Pass::Cookie { login: name, hub_session: session })
}

#[tokio::test]
async fn after_a_logout_at_the_hub_a_stolen_cookie_is_good_for_a_minute_of_looking_and_no_change() {
    let hub = FakeHub::start().await;
    let now = Instant::now();
    let (doors, pass) = entered(&hub, now).await;
    hub.log_out("alice");
    assert!(doors.visitor(&pass, Ask::IfOld, now + Duration::from_secs(59)).await.is_ok());
    let later = doors.visitor(&pass, Ask::IfOld, now + Duration::from_secs(60)).await;
    assert!(matches!(later, Err(Outside::NoLogin)), "{later:?}");
    let gone = doors.visitor(&pass, Ask::IfOld, now).await;
    assert!(matches!(gone, Err(Outside::NoLogin)), "it does not come back");

    let hub = FakeHub::start().await;
    let (doors, pass) = entered(&hub, now).await;
    hub.log_out("alice");
    let change = doors.visitor(&pass, Ask::Anew, now + Duration::from_secs(1)).await;
    assert!(matches!(change, Err(Outside::NoLogin)), "{change:?}");
}

#[tokio::test]
async fn in_the_browser_that_left_the_hub_it_ends_at_once() {
    let hub = FakeHub::start().await;
    let now = Instant::now();
    let (doors, Pass::Cookie { login, .. }) = entered(&hub, now).await else { panic!("a cookie") };
    hub.log_out("alice");
    let left = Pass::Cookie { login, hub_session: None };
    assert!(matches!(doors.visitor(&left, Ask::IfOld, now).await, Err(Outside::NoLogin)));
}

#[tokio::test]
async fn a_silent_hub_is_believed_for_five_minutes_of_looking() {
    let hub = FakeHub::start().await;
    let now = Instant::now();
    let (doors, pass) = entered(&hub, now).await;
    hub.breaks();
    let at = |seconds| now + Duration::from_secs(seconds);
    assert!(doors.visitor(&pass, Ask::IfOld, at(299)).await.is_ok());
    assert!(matches!(doors.visitor(&pass, Ask::Anew, at(1)).await, Err(Outside::HubSilent(_))));
    assert!(matches!(doors.visitor(&pass, Ask::IfOld, at(300)).await, Err(Outside::HubSilent(_))));
}

#[tokio::test]
async fn a_token_is_asked_about_once_a_minute() {
    let hub = FakeHub::start().await;
    let doors = Doors::new(Login::new(environment(&hub, &[]).login().unwrap()).unwrap());
    let pass = Pass::Token("token-of-alice".to_owned().into());
    let now = Instant::now();
    for seconds in [0, 1, 59, 60, 61] {
        doors.visitor(&pass, Ask::IfOld, now + Duration::from_secs(seconds)).await.unwrap();
    }
    assert_eq!(hub.asked(), 2);
    hub.log_out("alice");
    assert!(doors.visitor(&pass, Ask::Anew, now + Duration::from_secs(62)).await.is_err());
    assert!(doors.visitor(&pass, Ask::IfOld, now + Duration::from_secs(62)).await.is_err());
}
