//! The tenant whose tasks a client names: that of its context, otherwise that of its key.

use tokio::sync::OnceCell;
use tonic::Code;

use crate::{
    channel::{Channels, Server},
    v1::{WhoAmIRequest, WhoAmIResponse},
    Result,
};

/// The tenant of a key that belongs to none: an administrator's.
const DEFAULT: &str = "default";

#[derive(Default)]
pub(crate) struct Tenant {
    found: OnceCell<String>,
}

impl Tenant {
    /// Its id; the first use asks the server for it, where the context names none.
    pub(crate) async fn id(&self, channels: &Channels) -> Result<&str> {
        let found = self.found.get_or_try_init(|| async {
            match channels.context.tenant.as_str() {
                "" => of_key(channels).await,
                configured => Ok(configured.to_owned()),
            }
        });
        Ok(found.await?)
    }
}

async fn of_key(channels: &Channels) -> Result<String> {
    let path = "/taskyard.v1.ApiKeyService/WhoAmI";
    let answer: Result<WhoAmIResponse> = channels.unary(Server::Taskdb, path, WhoAmIRequest {}, None).await;
    match answer {
        Ok(response) => {
            let tenant = response.api_key.unwrap_or_default().tenant;
            Ok(if tenant.is_empty() { DEFAULT.to_owned() } else { tenant })
        }
        // A server of before this method.
        Err(error) if error.failure().is_some_and(|found| found.code == Code::Unimplemented) => Ok(DEFAULT.to_owned()),
        Err(error) => Err(error),
    }
}
