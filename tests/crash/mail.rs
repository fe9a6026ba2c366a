//! A mail server that ends the service at some step of a letter.

use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{Letter, Point, Step, World};

pub async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

pub async fn serve(listener: TcpListener, world: Weak<World>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let Some(world) = world.upgrade() else { return };
        // A client that was killed breaks the connection at any place.
        tokio::spawn(async move { talk(client, &world).await.ok() });
    }
}

async fn talk(client: TcpStream, world: &Arc<World>) -> std::io::Result<()> {
    let number = {
        let mut state = world.state();
        state.connections += 1;
        state.connections
    };
    let (from, mut to) = client.into_split();
    let mut lines = BufReader::new(from).lines();
    let at = |step| world.reached(Point::Letter(number, step));
    at(Step::Connected);
    to.write_all(b"220 here\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => {
                at(Step::Hello);
                to.write_all(b"250 hello\r\n").await?;
            }
            "MAIL" => {
                at(Step::Sender);
                to.write_all(b"250 sender\r\n").await?;
            }
            "RCPT" => {
                at(Step::Recipient);
                to.write_all(b"250 recipient\r\n").await?;
            }
            "DATA" => {
                at(Step::Data);
                to.write_all(b"354 go on\r\n").await?;
                take(&mut lines, &mut to, world, number).await?;
            }
            _ => to.write_all(b"250 fine\r\n").await?,
        }
    }
    Ok(())
}

async fn take(
    lines: &mut Lines<BufReader<OwnedReadHalf>>,
    to: &mut OwnedWriteHalf,
    world: &Arc<World>,
    number: usize,
) -> std::io::Result<()> {
    let mut id = String::new();
    loop {
        let Some(line) = lines.next_line().await? else { return Ok(()) };
        if let Some(found) = line.strip_prefix("Message-ID: ") {
            found.clone_into(&mut id);
        }
        if line == "." {
            break;
        }
    }
    world.reached(Point::Letter(number, Step::Content));
    let kind = ["warning", "reminder", "stopped"]
        .into_iter()
        .find(|kind| id.trim_start_matches('<').starts_with(kind));
    let letter = Letter { at: Instant::now(), kind: kind.unwrap_or("other"), id };
    let last = Point::Letter(number, Step::Accepted);
    let lock = (world.point == last).then(|| world.no_more_commits());
    // Of a letter that is there as a whole, a real server may keep what its client no longer hears of.
    world.state().letters.push(letter);
    to.write_all(b"250 2.0.0 queued\r\n").await.ok();
    world.reached(last);
    drop(lock);
    Ok(())
}
