//! Schedules: tasks that are created by time.

use std::time::SystemTime;

use async_stream::try_stream;
use tokio_stream::Stream;

use crate::{
    channel::Server,
    new_task::{new_request_id, NewTask},
    v1::{
        BackfillScheduleRequest, BackfillScheduleResponse, CreateScheduleRequest, CreateScheduleResponse,
        DeleteScheduleRequest, DeleteScheduleResponse, GetScheduleRequest, GetScheduleResponse, ListSchedulesRequest,
        ListSchedulesResponse, PauseScheduleRequest, PauseScheduleResponse, PreviewScheduleRequest,
        PreviewScheduleResponse, ResumeScheduleRequest, ResumeScheduleResponse, RunScheduleRequest,
        RunScheduleResponse, Schedule, ScheduledInstant, UpdateScheduleRequest, UpdateScheduleResponse,
    },
    Client, Result,
};

macro_rules! path {
    ($method:literal) => {
        concat!("/taskyard.v1.ScheduleService/", $method)
    };
}

/// The schedules of a client's tenant. A schedule is given by its id or full name.
#[derive(Clone)]
pub struct Schedules {
    client: Client,
}

impl Schedules {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates a schedule of a task; its first instant is after now. `times` is when it creates the task, and what it does
    /// with late and overlapping instants. A retry inside creates no second schedule.
    pub async fn create(&self, id: &str, task: NewTask, times: Schedule) -> Result<Schedule> {
        let request = CreateScheduleRequest {
            parent: self.client.parent().await?,
            schedule_id: id.to_owned(),
            schedule: Some(Schedule { template: task.request.task, ..times }),
            request_id: new_request_id(),
            ..Default::default()
        };
        let response: CreateScheduleResponse =
            self.client.call(Server::Taskdb, path!("CreateSchedule"), request).await?;
        Ok(response.schedule.unwrap_or_default())
    }

    /// A schedule.
    pub async fn get(&self, schedule: &str) -> Result<Schedule> {
        let request = GetScheduleRequest { name: self.name(schedule).await? };
        let response: GetScheduleResponse = self.client.call(Server::Taskdb, path!("GetSchedule"), request).await?;
        Ok(response.schedule.unwrap_or_default())
    }

    /// Schedules that match a filter such as `paused = false`, by id; pages of `page_size` (0: the server's default) are
    /// fetched as they are read.
    pub fn list(&self, filter: &str, page_size: i32) -> impl Stream<Item = Result<Schedule>> {
        let client = self.client.clone();
        let filter = filter.to_owned();
        let mut request = ListSchedulesRequest { filter, page_size, ..Default::default() };
        try_stream! {
            request.parent = client.parent().await?;
            loop {
                let page: ListSchedulesResponse =
                    client.call(Server::Taskdb, path!("ListSchedules"), request.clone()).await?;
                for schedule in page.schedules {
                    yield schedule;
                }
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
        }
    }

    /// Changes the fields that `paths` name, such as `cron`; fails if the schedule changed since it was read.
    pub async fn update(&self, schedule: Schedule, paths: &[&str]) -> Result<Schedule> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let request = UpdateScheduleRequest {
            schedule: Some(schedule),
            update_mask: Some(prost_types::FieldMask { paths }),
            ..Default::default()
        };
        let response: UpdateScheduleResponse =
            self.client.call(Server::Taskdb, path!("UpdateSchedule"), request).await?;
        Ok(response.schedule.unwrap_or_default())
    }

    /// Lets a schedule create no tasks until it is resumed. Repeating it is safe.
    pub async fn pause(&self, schedule: &str, note: &str) -> Result<Schedule> {
        let request = PauseScheduleRequest { name: self.name(schedule).await?, note: note.to_owned() };
        let response: PauseScheduleResponse = self.client.call(Server::Taskdb, path!("PauseSchedule"), request).await?;
        Ok(response.schedule.unwrap_or_default())
    }

    /// Lets a schedule go on at its next instant; the pause is not caught up. Repeating it is safe.
    pub async fn resume(&self, schedule: &str) -> Result<Schedule> {
        let request = ResumeScheduleRequest { name: self.name(schedule).await? };
        let response: ResumeScheduleResponse =
            self.client.call(Server::Taskdb, path!("ResumeSchedule"), request).await?;
        Ok(response.schedule.unwrap_or_default())
    }

    /// Creates the task of a schedule now; its overlap policy applies.
    pub async fn run(&self, schedule: &str) -> Result<RunScheduleResponse> {
        let request = RunScheduleRequest { name: self.name(schedule).await?, request_id: new_request_id() };
        self.client.call(Server::Taskdb, path!("RunSchedule"), request).await
    }

    /// Creates the tasks of past instants from `start` to before `end`, at most 1,000; their full names.
    pub async fn backfill(&self, schedule: &str, start: SystemTime, end: SystemTime) -> Result<Vec<String>> {
        let request = BackfillScheduleRequest {
            name: self.name(schedule).await?,
            start_time: Some(start.into()),
            end_time: Some(end.into()),
            ..Default::default()
        };
        let response: BackfillScheduleResponse =
            self.client.call(Server::Taskdb, path!("BackfillSchedule"), request).await?;
        Ok(response.tasks)
    }

    /// The next instants of a stored schedule.
    pub async fn preview(&self, schedule: &str, count: i32) -> Result<Vec<ScheduledInstant>> {
        let request = PreviewScheduleRequest {
            parent: self.client.parent().await?,
            name: self.name(schedule).await?,
            count,
            ..Default::default()
        };
        let response: PreviewScheduleResponse =
            self.client.call(Server::Taskdb, path!("PreviewSchedule"), request).await?;
        Ok(response.instants)
    }

    /// Deletes a schedule; its tasks stay.
    pub async fn delete(&self, schedule: &str) -> Result<()> {
        let request = DeleteScheduleRequest { name: self.name(schedule).await?, ..Default::default() };
        let _: DeleteScheduleResponse = self.client.call(Server::Taskdb, path!("DeleteSchedule"), request).await?;
        Ok(())
    }

    async fn name(&self, schedule: &str) -> Result<String> {
        if schedule.starts_with("tenants/") {
            return Ok(schedule.to_owned());
        }
        Ok(format!("{}/schedules/{schedule}", self.client.parent().await?))
    }
}
