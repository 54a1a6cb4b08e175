//! A worker that serves the function "greet", one task at a time: it claims a task, renews the lease while it works, and
//! reports the outcome. It ends after as many tasks as its argument names.

use std::time::{Duration, Instant};

use taskyard::{
    json_payload, payload_text,
    v1::{
        run_report::Report, Assignment, ClaimTasksRequest, ClaimTasksResponse, ErrorClass, ExecutionKind, LeaseAction,
        LeaseRef, LeaseVerdict, ReleaseReason, RenewWorkRequest, RenewWorkResponse, ReportWorkRequest,
        ReportWorkResponse, RunCancelled, RunFailed, RunReleased, RunReport, RunStarted, RunSucceeded,
        RunnerRegistration, TaskError, TaskResult,
    },
    Client, Result, Server,
};

const LEASE: Duration = Duration::from_secs(6);

#[derive(serde::Deserialize)]
struct Greeting {
    name: String,
    #[serde(default)]
    seconds: u64,
}

/// The function itself. It is dropped where it waits if the task is cancelled or lost.
async fn greet(payload: String) -> std::result::Result<serde_json::Value, TaskError> {
    let input: Greeting = serde_json::from_str(&payload).map_err(|error| TaskError {
        error_class: ErrorClass::Permanent.into(),
        code: "GREET_FAILED".to_owned(),
        message: error.to_string(),
        ..Default::default()
    })?;
    tokio::time::sleep(Duration::from_secs(input.seconds)).await;
    Ok(serde_json::json!({ "hello": input.name }))
}

struct Worker {
    client: Client,
    id: String,
}

impl Worker {
    async fn claim(&self) -> Result<Vec<Assignment>> {
        let registration = RunnerRegistration {
            task_types: vec!["*".to_owned()],
            execution_kinds: vec![ExecutionKind::Function.into()],
            functions: vec!["greet".to_owned()],
            capacity: 1,
            ..Default::default()
        };
        let request = ClaimTasksRequest {
            worker_id: self.id.clone(),
            // Of its own: repeating the claim with it strands no task whose answer was lost.
            request_id: format!("{:032x}", rand::random::<u128>()),
            registration: Some(registration),
            max_tasks: 1,
            lease_duration: LEASE.try_into().ok(),
            wait: Duration::from_secs(20).try_into().ok(),
        };
        let path = "/taskyard.v1.WorkService/ClaimTasks";
        let response: ClaimTasksResponse = self.client.call(Server::Scheduler, path, request).await?;
        Ok(response.assignments)
    }

    async fn execute(&self, assignment: Assignment) -> Result<()> {
        let lease = assignment.lease.unwrap_or_default();
        let mut expires = Instant::now() + LEASE;
        self.report(&lease, Report::Started(RunStarted::default())).await?;
        let payload = assignment.spec.unwrap_or_default().payload.unwrap_or_default();
        let mut work = Box::pin(greet(payload_text(&payload)));
        loop {
            let Ok(ended) = tokio::time::timeout(LEASE / 3, &mut work).await else {
                let sent = Instant::now();
                match self.renew(&lease).await {
                    Ok(LeaseAction::Cancel) => {
                        return self.report(&lease, Report::Cancelled(RunCancelled::default())).await;
                    }
                    Ok(LeaseAction::Pause) => {
                        let reason = ReleaseReason::Paused.into();
                        let released = RunReleased { reason, message: "paused".to_owned(), ..Default::default() };
                        return self.report(&lease, Report::Released(released)).await;
                    }
                    // Another worker may hold the task; a report would be rejected.
                    Ok(LeaseAction::Abort) => return Ok(()),
                    Ok(_) => expires = sent + LEASE,
                    Err(error) if Instant::now() > expires => return Err(error),
                    Err(outage) => eprintln!("not renewed: {outage}"),
                }
                continue;
            };
            let outcome = match ended {
                Ok(value) => {
                    let result = TaskResult { output: json_payload(&value).ok(), ..Default::default() };
                    Report::Succeeded(RunSucceeded { result: Some(result), ..Default::default() })
                }
                Err(error) => Report::Failed(RunFailed { error: Some(error), ..Default::default() }),
            };
            return self.report(&lease, outcome).await;
        }
    }

    async fn renew(&self, lease: &LeaseRef) -> Result<LeaseAction> {
        let request = RenewWorkRequest {
            worker_id: self.id.clone(),
            leases: vec![lease.clone()],
            lease_duration: LEASE.try_into().ok(),
        };
        let path = "/taskyard.v1.WorkService/RenewWork";
        let response: RenewWorkResponse = self.client.call(Server::Scheduler, path, request).await?;
        Ok(response.verdicts.first().map_or(LeaseAction::Unspecified, LeaseVerdict::action))
    }

    /// Repeated over broken connections by the client; a repeated report is applied once.
    async fn report(&self, lease: &LeaseRef, report: Report) -> Result<()> {
        let report = RunReport { lease: Some(lease.clone()), report: Some(report), ..Default::default() };
        let request = ReportWorkRequest { worker_id: self.id.clone(), reports: vec![report] };
        let path = "/taskyard.v1.WorkService/ReportWork";
        let _: ReportWorkResponse = self.client.call(Server::Scheduler, path, request).await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut left: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1);
    let worker = Worker { client: Client::connect()?, id: format!("rust-example-{}", std::process::id()) };
    while left > 0 {
        for assignment in worker.claim().await? {
            worker.execute(assignment).await?;
            left -= 1;
        }
    }
    Ok(())
}
