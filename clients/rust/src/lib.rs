//! Client for Taskyard, a service that runs tasks durably on a fleet of hosts.
//!
//! [`Client`] finds its server by itself, see [`Options`]; tasks are made by [`NewTask`]; the messages of the contract
//! are in [`v1`].

mod channel;
mod client;
mod context;
mod error;
mod new_task;
mod retry;
mod schedules;
mod service_config;
mod stream;
mod tenant;
mod trace;

/// Generated from the protos by `make generate`.
#[allow(dead_code, clippy::all, clippy::pedantic, rustdoc::all)]
mod stubs {
    pub mod taskyard {
        pub mod v1 {
            include!("stubs/taskyard.v1.rs");
        }
    }
    pub mod google {
        pub mod rpc {
            include!("stubs/google.rpc.rs");
        }
    }
}

pub use channel::Server;
pub use client::{Client, Options};
pub use context::Context;
pub use error::{Error, Failure, FieldViolation};
pub use new_task::{json_payload, payload_text, NewTask};
pub use schedules::Schedules;
pub use stream::WatchEvent;
pub use stubs::taskyard::v1;
pub use trace::with_traceparent;

/// The result of every call.
pub type Result<T> = std::result::Result<T, Error>;
