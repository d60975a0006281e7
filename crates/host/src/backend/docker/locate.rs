//! Where the engine is: what `DOCKER_HOST` says, or the context that the user's docker client has
//! chosen, or the first of the usual sockets that is there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::http::Endpoint;
use super::secure::Certificates;

/// The longest file of the docker client that is read.
const LIMIT: u64 = 1 << 20;
/// The context that has no file: the usual sockets.
const DEFAULT: &str = "default";

/// The engine's address. The order is that of the docker client.
pub(super) fn endpoint(var: impl Fn(&str) -> Option<String>) -> Result<Endpoint, String> {
    let set = |name: &str| var(name).filter(|v| !v.is_empty());
    let folder =
        set("DOCKER_CONFIG").map(PathBuf::from).or_else(|| Some(PathBuf::from(set("HOME")?).join(".docker")));
    if let Some(host) = set("DOCKER_HOST") {
        let by = |why| format!("DOCKER_HOST is {host}: {why}");
        let tls = match (set("DOCKER_TLS_VERIFY"), set("DOCKER_TLS")) {
            (Some(_), _) => {
                let folder = set("DOCKER_CERT_PATH").map(PathBuf::from).or(folder);
                Some(folder.ok_or_else(|| by("DOCKER_CERT_PATH says nothing of its certificates"))?)
            }
            (None, Some(_)) => return Err(by(UNVERIFIED)),
            (None, None) => None,
        };
        return address(&host, tls).map_err(by);
    }
    if let Some(folder) = folder {
        let chosen = match set("DOCKER_CONTEXT") {
            Some(name) => Some((name, "DOCKER_CONTEXT".to_owned())),
            None => current(&folder)?,
        };
        if let Some((name, by)) = chosen.filter(|(name, _)| name != DEFAULT) {
            return context(&folder, &name)
                .map_err(|why| format!("the docker context {name:?}, chosen by {by}: {why}"));
        }
    }
    let own = set("XDG_RUNTIME_DIR").filter(|d| d.starts_with('/')).map(PathBuf::from);
    let own = own.into_iter().flat_map(|d| [d.join("docker.sock"), d.join("podman/podman.sock")]);
    let shared = ["/var/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from);
    let found = std::iter::once(shared[0].clone()).chain(own).chain([shared[1].clone()]).find(|p| p.exists());
    found.map(Endpoint::Unix).ok_or_else(|| {
        "no engine is running here: start Docker or Podman's socket, or say where it is with DOCKER_HOST"
            .into()
    })
}

/// Why an engine that any machine could claim to be is not spoken to.
const UNVERIFIED: &str = "its certificate would not be checked; with DOCKER_TLS_VERIFY=1 it is";

/// An address as docker writes them, with the folder of its certificates where it has any.
fn address(host: &str, tls: Option<PathBuf>) -> Result<Endpoint, &'static str> {
    if let Some(path) = host.strip_prefix("unix://") {
        return Ok(Endpoint::Unix(path.into()));
    }
    let schemes = ["tcp://", "http://", "https://"];
    let Some(address) = schemes.iter().find_map(|scheme| host.strip_prefix(scheme)) else {
        return Err("only unix:// and tcp:// can be reached");
    };
    let address = address.trim_end_matches('/');
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with = |port: &str| if has_port { address.to_owned() } else { format!("{address}:{port}") };
    match tls {
        Some(folder) => Ok(Endpoint::Tls(with("2376"), Certificates(folder))),
        None if host.starts_with("https://") => Err(UNVERIFIED),
        None => Ok(Endpoint::Tcp(with("2375"))),
    }
}

/// The context that the user has made the current one, and the file that says so.
fn current(folder: &Path) -> Result<Option<(String, String)>, String> {
    let path = folder.join("config.json");
    let config = read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let name = config.and_then(|c| c["currentContext"].as_str().map(str::to_owned));
    Ok(name.filter(|n| !n.is_empty()).map(|name| (name, path.display().to_string())))
}

/// Where a context's engine is. Contexts lie under the hash of their name.
fn context(folder: &Path, name: &str) -> Result<Endpoint, String> {
    let id: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
    let contexts = folder.join("contexts");
    let path = contexts.join("meta").join(&id).join("meta.json");
    let at = |why: &str| format!("{}: {why}", path.display());
    let meta = read(&path).map_err(|why| at(&why))?.ok_or("there is none of that name")?;
    let docker = &meta["Endpoints"]["docker"];
    let host = docker["Host"].as_str().filter(|h| !h.is_empty()).ok_or_else(|| at("it names no engine"))?;
    let tls = contexts.join("tls").join(&id).join("docker");
    if docker["SkipTLSVerify"] == true {
        return Err(at("its certificate would not be checked"));
    }
    address(host, tls.is_dir().then_some(tls)).map_err(|why| format!("its engine is {host}: {why}"))
}

/// A file of JSON, if it is there.
fn read(path: &Path) -> Result<Option<Value>, String> {
    match std::fs::metadata(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(e.to_string()),
        Ok(meta) if meta.len() > LIMIT => return Err("it is too long to be docker's".into()),
        Ok(_) => {}
    }
    let text = std::fs::read(path).map_err(|e| e.to_string())?;
    serde_json::from_slice(&text).map(Some).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_where_the_environment_says() {
        let with = |pairs: &'static [(&str, &str)]| {
            endpoint(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        let unix = Endpoint::Unix("/run/x.sock".into());
        assert_eq!(with(&[("DOCKER_HOST", "unix:///run/x.sock"), ("DOCKER_CONTEXT", "other")]), Ok(unix));
        assert_eq!(with(&[("DOCKER_HOST", "tcp://h:1")]), Ok(Endpoint::Tcp("h:1".into())));
        assert_eq!(with(&[("DOCKER_HOST", "tcp://h")]), Ok(Endpoint::Tcp("h:2375".into())));
        assert!(with(&[("DOCKER_HOST", "ssh://h")]).is_err());
        let tls = with(&[("DOCKER_HOST", "tcp://h"), ("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/c")]);
        assert_eq!(tls, Ok(Endpoint::Tls("h:2376".into(), Certificates("/c".into()))));
        let tls = with(&[("DOCKER_HOST", "tcp://[::1]"), ("DOCKER_TLS_VERIFY", "1"), ("HOME", "/h")]);
        assert_eq!(tls, Ok(Endpoint::Tls("[::1]:2376".into(), Certificates("/h/.docker".into()))));
        assert!(with(&[("DOCKER_HOST", "tcp://h"), ("DOCKER_TLS", "1")]).is_err());
        assert!(with(&[("DOCKER_HOST", "https://h")]).is_err());
    }

    #[test]
    fn the_engine_is_where_the_context_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let docker = folder.path().join(".docker");
        let id = |name: &str| Sha256::digest(name).iter().map(|b| format!("{b:02x}")).collect::<String>();
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().expect("one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let meta = |name: &str, host: &str| {
            let text = format!(r#"{{"Name":"{name}","Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
            write(docker.join("contexts/meta").join(id(name)).join("meta.json"), &text);
        };
        // The name under which docker itself keeps this one.
        assert_eq!(id("rootless"), "12b961af5feb3e9d39f93b2cefb9a1a944f18d02cca0cac2f04f5a982240605f");
        meta("rootless", "unix:///run/user/1/docker.sock");
        meta("far", "tcp://far:2376");
        meta("shell", "ssh://far");
        write(docker.join("contexts/tls").join(id("far")).join("docker/ca.pem"), "");
        write(docker.join("contexts/meta").join(id("odd")).join("meta.json"), "{");
        let home = folder.path().to_str().expect("text").to_owned();
        let with = |context: Option<&str>| {
            let (home, context) = (home.clone(), context.map(str::to_owned));
            endpoint(move |name| match name {
                "HOME" => Some(home.clone()),
                "DOCKER_CONTEXT" => context.clone(),
                _ => None,
            })
        };
        let unix = Endpoint::Unix("/run/user/1/docker.sock".into());
        assert_eq!(with(Some("rootless")), Ok(unix.clone()));
        let tls = docker.join("contexts/tls").join(id("far")).join("docker");
        assert_eq!(with(Some("far")), Ok(Endpoint::Tls("far:2376".into(), Certificates(tls))));
        let refused = [("shell", "only unix"), ("none", "none of that name"), ("odd", "meta.json: EOF")];
        for (name, why) in refused {
            let said = with(Some(name)).expect_err("refused");
            assert!(said.contains(why) && said.contains("DOCKER_CONTEXT"), "{said}");
        }
        write(docker.join("config.json"), r#"{"auths":{},"currentContext":"rootless"}"#);
        assert_eq!(with(None), Ok(unix));
        assert!(!with(Some("default")).is_err_and(|e| e.contains("context")));
        write(docker.join("config.json"), "[");
        assert!(with(None).expect_err("refused").contains("config.json"));
    }
}
