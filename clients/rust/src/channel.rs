//! Calls to the servers of a context: key, TLS, deadlines, retries by service config, failover, trace context.

use std::{
    collections::HashMap,
    fs,
    net::IpAddr,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Mutex,
    },
    time::Duration,
};

use prost::Message;
use rand::Rng;
use tokio::time::{timeout_at, Instant};
use tonic::{
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
    Request, Status, Streaming,
};
use tonic_prost::ProstCodec;

use crate::{
    context::Context,
    error::{code_of, from_call, Target},
    service_config::{self, Retries},
    trace, Error, Result,
};

const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
// A replica that hangs shows within 15 s, while a call is open.
const KEEPALIVE_TIME: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// taskdb with the ordinary key, taskdb with the administrator's, or the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    Taskdb,
    Admin,
    Scheduler,
}

struct Replica {
    address: String,
    channel: Channel,
}

/// The replicas of one server with one key; calls go to one of them until it is unavailable.
struct Replicas {
    key: String,
    all: Vec<Replica>,
    current: AtomicUsize,
}

impl Replicas {
    fn choose(&self) -> (usize, &Replica) {
        let index = self.current.load(Ordering::Relaxed);
        (index, &self.all[index])
    }

    fn leave(&self, index: usize) {
        let next = (index + 1) % self.all.len();
        // Another call may have left it already.
        let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The connections of a client, each opened when it is first used.
pub(crate) struct Channels {
    pub context: Context,
    timeout: Option<Duration>,
    open: Mutex<HashMap<Server, Arc<Replicas>>>,
}

impl Channels {
    /// Fails if a key would leave this machine in plaintext.
    pub(crate) fn new(context: Context, timeout: Option<Duration>) -> Result<Self> {
        for target in [&context.address, &context.scheduler] {
            if !target.is_empty() {
                addresses(&context, target)?;
            }
        }
        Ok(Self { context, timeout, open: Mutex::default() })
    }

    /// The response of one call, repeated and moved to another replica as the service config allows.
    pub(crate) async fn unary<Q, R>(
        &self,
        server: Server,
        path: &'static str,
        request: Q,
        limit: Option<Duration>,
    ) -> Result<R>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let method = service_config::method(path);
        let limit = limit.or(self.timeout).or(method.timeout);
        let deadline = limit.map(|limit| Instant::now() + limit);
        let replicas = self.replicas(server)?;
        let mut attempt = 1;
        let mut left = replicas.all.len();
        loop {
            let (index, replica) = replicas.choose();
            let sent = self.request(request.clone(), &replicas.key, deadline)?;
            let mut grpc = Grpc::new(replica.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
            let call = async {
                grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
                let codec = ProstCodec::<Q, R>::default();
                grpc.unary(sent, PathAndQuery::from_static(path), codec).await
            };
            let answer = match deadline {
                Some(deadline) => timeout_at(deadline, call).await.map_err(|_| expired(path, limit))?,
                None => call.await,
            };
            let status = match answer {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            let target = Target { address: &replica.address, key: &replicas.key, path, context: &self.context };
            let error = from_call(&status, &target);
            let retries = method.retries.as_ref().filter(|retries| retries.allows(code_of(&status)));
            let Some(retries) = retries.filter(|_| !matches!(error, Error::CertificateUntrusted(_))) else {
                return Err(error);
            };
            if attempt >= retries.max_attempts {
                // As often as the config allows at this replica, then at the next one.
                replicas.leave(index);
                left -= 1;
                attempt = 0;
                if left == 0 {
                    return Err(error);
                }
            }
            tokio::time::sleep(delay(retries, attempt, &status)).await;
            attempt += 1;
        }
    }

    /// The stream of responses of one call.
    pub(crate) async fn server_stream<Q, R>(
        &self,
        server: Server,
        path: &'static str,
        request: Q,
    ) -> Result<Responses<R>>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let replicas = self.replicas(server)?;
        let (index, replica) = replicas.choose();
        let sent = self.request(request, &replicas.key, None)?;
        let mut grpc = Grpc::new(replica.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let opened = async {
            grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
            grpc.server_streaming(sent, PathAndQuery::from_static(path), ProstCodec::<Q, R>::default()).await
        };
        let answer = opened.await;
        let mut responses =
            Responses { stream: None, replicas: Arc::clone(&replicas), index, path, context: self.context.clone() };
        match answer {
            Ok(response) => responses.stream = Some(response.into_inner()),
            Err(status) => return Err(responses.lost(&status)),
        }
        Ok(responses)
    }

    fn request<Q>(&self, message: Q, key: &str, deadline: Option<Instant>) -> Result<Request<Q>> {
        let mut request = Request::new(message);
        let mut headers = vec![("traceparent", trace::current())];
        if !key.is_empty() {
            headers.push(("authorization", format!("Bearer {key}")));
        }
        for (name, text) in headers.into_iter().filter(|(_, text)| !text.is_empty()) {
            let value: MetadataValue<Ascii> = text.parse().map_err(|_| {
                let source = &self.context.source;
                Error::ContextInvalid(format!("the {name} of {source} has characters that no header may have"))
            })?;
            request.metadata_mut().insert(name, value);
        }
        if let Some(deadline) = deadline {
            request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        Ok(request)
    }

    fn replicas(&self, server: Server) -> Result<Arc<Replicas>> {
        let mut open = self.open.lock().expect("no holder panics");
        if let Some(found) = open.get(&server) {
            return Ok(Arc::clone(found));
        }
        let context = &self.context;
        let target = if server == Server::Scheduler { &context.scheduler } else { &context.address };
        if target.is_empty() {
            return Err(Error::ContextInvalid(format!(
                "{} names no scheduler; set TASKYARD_SCHEDULER to its host and port",
                context.source
            )));
        }
        let admin = server == Server::Admin && !context.admin_key.is_empty();
        let key = if admin { context.admin_key.clone() } else { context.key.clone() };
        let all = addresses(context, target)?
            .into_iter()
            .map(|address| connect(context, target, address))
            .collect::<Result<_>>()?;
        let replicas = Arc::new(Replicas { key, all, current: AtomicUsize::new(0) });
        open.insert(server, Arc::clone(&replicas));
        Ok(replicas)
    }
}

/// The responses of one stream; dropping it cancels the call.
pub(crate) struct Responses<R> {
    stream: Option<Streaming<R>>,
    replicas: Arc<Replicas>,
    index: usize,
    path: &'static str,
    context: Context,
}

impl<R> Responses<R> {
    /// The next response; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<R>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let answer = stream.message().await;
        answer.map_err(|status| self.lost(&status))
    }

    fn lost(&self, status: &Status) -> Error {
        if code_of(status) == tonic::Code::Unavailable {
            self.replicas.leave(self.index);
        }
        let address = &self.replicas.all[self.index].address;
        from_call(status, &Target { address, key: &self.replicas.key, path: self.path, context: &self.context })
    }
}

fn expired(path: &str, limit: Option<Duration>) -> Error {
    Error::deadline_exceeded(path.trim_start_matches('/'), limit.unwrap_or_default())
}

fn delay(retries: &Retries, attempt: u32, status: &Status) -> Duration {
    let pushback = status.metadata().get(PUSHBACK).and_then(|value| value.to_str().ok()?.parse().ok());
    if let Some(ms) = pushback {
        return Duration::from_millis(ms);
    }
    let power = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let longest = retries.initial.mul_f64(retries.multiplier.powi(power)).min(retries.max);
    longest.mul_f64(rand::rng().random_range(0.8..1.2))
}

fn is_secure(context: &Context, target: &str) -> bool {
    !context.tls_ca.is_empty() || target.contains("https://")
}

/// The addresses of a list `host:port,host:port`; fails if a key would leave this machine in plaintext.
fn addresses(context: &Context, target: &str) -> Result<Vec<String>> {
    let bare = target.replace("https://", "").replace("http://", "");
    let addresses: Vec<String> = bare.split(',').map(|address| address.trim().to_owned()).collect();
    if addresses.iter().any(String::is_empty) {
        let message = format!("'{target}' contains an empty address; use host:port,host:port");
        return Err(Error::ContextInvalid(message));
    }
    match addresses.iter().find(|address| !is_secure(context, target) && !is_local(address)) {
        None => Ok(addresses),
        Some(plain) => Err(Error::PlaintextRefused(format!(
            "{plain} is not on this machine and would get the key in plaintext; use TLS: \
             https:// before the address, or TASKYARD_TLS_CA"
        ))),
    }
}

/// Whether an address reaches this machine only.
fn is_local(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn connect(context: &Context, target: &str, address: String) -> Result<Replica> {
    let unusable = |error: &dyn std::fmt::Display| {
        Error::ContextInvalid(format!("'{address}' of {} cannot be used ({error}); use host:port", context.source))
    };
    let scheme = if is_secure(context, target) { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(|error| unusable(&error))?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE_TIME)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(false);
    if is_secure(context, target) {
        let mut tls = ClientTlsConfig::new();
        if context.tls_ca.is_empty() {
            tls = tls.with_native_roots();
        } else {
            tls = tls.ca_certificate(Certificate::from_pem(authority(&context.tls_ca)?));
        }
        endpoint = endpoint.tls_config(tls).map_err(|error| unusable(&error))?;
    }
    let channel = endpoint.connect_lazy();
    Ok(Replica { address, channel })
}

/// The certificates of the CA, in PEM.
fn authority(file: &str) -> Result<Vec<u8>> {
    let invalid = |problem: String| Error::ContextInvalid(format!("TASKYARD_TLS_CA {file} {problem}; name a PEM file"));
    let pem = fs::read(file).map_err(|error| invalid(format!("cannot be read ({error})")))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(invalid("holds no certificate".to_owned()));
    }
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_loopback_is_local() {
        let local = ["localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"];
        assert!(local.iter().all(|address| is_local(address)));
        assert!(!["192.0.2.1:1", "example.com:1", "localhost.example.com:1"].iter().any(|address| is_local(address)));
    }
}
