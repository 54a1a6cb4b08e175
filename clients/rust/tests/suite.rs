//! The client against a real suite, which the variables of the environment name.

use std::{net::TcpListener, time::Duration};

use taskyard::{v1, Client, Error, NewTask, Options, Result};
use tokio_stream::StreamExt;

async fn created(client: &Client, task: NewTask) -> Result<v1::Task> {
    Ok(client.create(task).await?.task.unwrap_or_default())
}

fn unused() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

#[tokio::test]
async fn a_created_task_runs_and_its_output_is_its_log() -> Result<()> {
    let client = Client::connect()?;
    let task = created(&client, NewTask::command("sh", ["-c", "echo $WHO"]).env("WHO", "rust")).await?;
    let ended = client.wait(&task.name, Some(Duration::from_secs(60))).await?;
    assert_eq!(ended.status.unwrap_or_default().phase(), v1::TaskPhase::Succeeded);
    let lines: Result<Vec<v1::LogEntry>> = client.logs(&task.name, true).collect().await;
    assert_eq!(lines?.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["rust"]);
    Ok(())
}

#[tokio::test]
async fn errors_have_their_reason_and_fields() -> Result<()> {
    let client = Client::connect()?;
    let missing = client.get("no-such-task").await.expect_err("it does not exist");
    assert_eq!(missing.reason(), Some(v1::ErrorReason::NotFound));
    let invalid = client.create(NewTask::external().priority(5000)).await.expect_err("it is too large");
    assert_eq!(invalid.failure().expect("of a call").violations[0].field, "task.spec.priority");
    Ok(())
}

#[tokio::test]
async fn a_batch_answers_each_item_and_pages_are_one_stream() -> Result<()> {
    let client = Client::connect()?;
    let label = unused().replace(':', "-");
    let made = client.create_all((0..7).map(|_| NewTask::external().label("label", &label))).await?;
    assert!(made.iter().all(Result::is_ok));
    let mixed = client.create_all([NewTask::external(), NewTask::external().priority(-1)]).await?;
    assert!(mixed[0].is_ok() && mixed[1].is_err());
    let filter = format!("metadata.labels.label = \"{label}\"");
    let found: Result<Vec<v1::Task>> = client.list(&filter, 3).collect().await;
    assert_eq!(found?.len(), 7);
    Ok(())
}

#[tokio::test]
async fn a_watch_ends_with_its_task() -> Result<()> {
    let client = Client::connect()?;
    let task = created(&client, NewTask::command("false", Vec::<String>::new()).retries(0)).await?;
    let events: Result<Vec<taskyard::WatchEvent>> = client.watch_task(&task.name).collect().await;
    let last = events?.pop().expect("at least the snapshot").event.status.unwrap_or_default();
    assert_eq!(last.phase(), v1::TaskPhase::Failed);
    Ok(())
}

#[tokio::test]
async fn a_wait_that_takes_too_long_is_a_timeout() -> Result<()> {
    let client = Client::connect()?;
    let task = created(&client, NewTask::external()).await?;
    let late = client.wait(&task.name, Some(Duration::from_millis(50))).await;
    assert!(matches!(late, Err(Error::WaitTimeout(_))));
    Ok(())
}

#[tokio::test]
async fn calls_go_to_the_next_address_and_bad_ones_have_errors_of_their_own() -> Result<()> {
    let context = Client::connect()?.context().clone();
    let nobody = unused();
    let both = format!("{nobody},{}", context.address);
    let two = Options::new().address(&both).key(&context.key).connect()?;
    assert!(!created(&two, NewTask::external()).await?.name.is_empty());
    let lost = Options::new().address(&nobody).key("k").connect()?.get("x").await;
    assert!(matches!(&lost, Err(Error::ServerUnreachable(found)) if found.message.contains(&nobody)));
    let wrong = Options::new().address(&context.address).key("ty_wrong_0123456789abcdef").connect()?;
    assert!(matches!(wrong.get("x").await, Err(Error::Unauthenticated(_))));
    let plain = Options::new().address("192.0.2.1:7420").connect();
    assert!(matches!(plain, Err(Error::PlaintextRefused(_))));
    Ok(())
}
