//! Profiles of ~/.aws/config and ~/.aws/credentials.
//!
//! The files look like INI, but by rules of their own: a line that begins with white space belongs to the property before it, a
//! comment within a line has white space before it, and nothing is escaped or quoted, so that secrets may hold any sign.

use super::{Finder, container, of_variables, process, sts};
use crate::locality::aws::environment::Environment;
use crate::locality::aws::failure::Failure;
use crate::locality::aws::file::{self, Unreadable};
use aws_credential_types::Credentials;
use std::collections::HashMap;
use std::path::Path;

/// Profiles that lead to one another.
const LONGEST_CHAIN: usize = 5;
const SUPPORTED: &str = "pointsman takes profiles with aws_access_key_id, role_arn with source_profile, credential_source or \
                         web_identity_token_file, or credential_process";

/// The properties of one profile.
type Profile = HashMap<String, String>;
/// All of them, by name.
type Profiles = HashMap<String, Profile>;

/// Credentials of the profile that AWS_PROFILE names, or `default`. `None`: it is not there, or tells of none.
pub fn find(finder: &mut Finder<'_>) -> Result<Option<Credentials>, Failure> {
    let named = finder.environment.get("AWS_PROFILE");
    let name = named.unwrap_or("default").to_owned();
    let profiles = read(finder.environment)?;
    if named.is_some() && !profiles.contains_key(&name) {
        return Err(mistake(&name, "is in neither ~/.aws/config nor ~/.aws/credentials", "see AWS_PROFILE"));
    }
    of(finder, &profiles, &name, LONGEST_CHAIN)
}

fn mistake(name: &str, what: &str, remedy: &'static str) -> Failure {
    Failure::configuration(format!("the AWS profile {name:?} {what}"), remedy)
}

fn of(
    finder: &mut Finder<'_>,
    profiles: &Profiles,
    name: &str,
    depth: usize,
) -> Result<Option<Credentials>, Failure> {
    let Some(profile) = profiles.get(name) else { return Ok(None) };
    let get = |key: &str| profile.get(key).map(String::as_str);
    if let Some(arn) = get("role_arn") {
        return of_role(finder, profiles, name, arn, depth).map(Some);
    }
    if let Some(keys) = keys(name, profile)? {
        return Ok(Some(keys));
    }
    if let Some(command) = get("credential_process") {
        return process::find(command, finder.until).map(Some);
    }
    match ["sso_session", "sso_start_url", "login_session"].into_iter().any(|key| profile.contains_key(key)) {
        true => Err(mistake(
            name,
            "is one of IAM Identity Center (SSO) or of a login, which needs a person",
            SUPPORTED,
        )),
        false => Ok(None),
    }
}

fn keys(name: &str, profile: &Profile) -> Result<Option<Credentials>, Failure> {
    match (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
        (Some(key), Some(secret)) => {
            let token = profile.get("aws_session_token").cloned();
            Ok(Some(Credentials::new(key, secret, token, None, super::STATIC)))
        }
        (None, None) => Ok(None),
        _ => Err(mistake(name, "has half a key", "give it aws_access_key_id and aws_secret_access_key")),
    }
}

fn of_role(
    finder: &mut Finder<'_>,
    profiles: &Profiles,
    name: &str,
    arn: &str,
    depth: usize,
) -> Result<Credentials, Failure> {
    let Some(profile) = profiles.get(name) else { return Err(mistake(name, "is not there", SUPPORTED)) };
    let get = |key: &str| profile.get(key).map(String::as_str);
    if get("mfa_serial").is_some() {
        return Err(mistake(name, "has mfa_serial, which needs a person", SUPPORTED));
    }
    let role = sts::Role {
        external_id: get("external_id"),
        duration: get("duration_seconds"),
        ..sts::Role::new(arn, get("role_session_name"))
    };
    if let Some(file) = get("web_identity_token_file") {
        return sts::with_web_identity(finder, &role, Path::new(file));
    }
    let source = match (get("source_profile"), get("credential_source")) {
        (Some(own), None) if own == name => keys(name, profile)?,
        (Some(_), None) if depth == 0 => {
            return Err(mistake(name, "is one of a chain of source_profile without end", SUPPORTED));
        }
        (Some(source), None) => of(finder, profiles, source, depth - 1)?,
        (None, Some("Environment")) => of_variables(finder.environment)?,
        (None, Some("Ec2InstanceMetadata")) => Some(finder.of_instance()?),
        (None, Some("EcsContainer")) => Some(container::find(finder)?),
        _ => None,
    };
    let source = source.ok_or_else(|| mistake(name, "has a role_arn and nobody to assume it", SUPPORTED))?;
    sts::with_credentials(finder, &role, &source)
}

/// Both files; what ~/.aws/credentials says counts.
fn read(environment: &Environment) -> Result<Profiles, Failure> {
    let mut profiles = Profiles::new();
    for (variable, in_home, is_config) in
        [("AWS_CONFIG_FILE", ".aws/config", true), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false)]
    {
        let Some(path) = environment.file(variable, in_home) else { continue };
        let text = match file::read(&path) {
            Ok(text) => text,
            Err(Unreadable::Absent) => continue,
            Err(error) => {
                let what = format!("{} cannot be read: {error}", path.display());
                return Err(Failure::configuration(what, "let pointsman's user read it"));
            }
        };
        for (name, properties) in parse(&text, is_config) {
            profiles.entry(name).or_default().extend(properties);
        }
    }
    Ok(profiles)
}

/// In the config file, profiles but the default one are called `profile NAME`, and there are other sections.
fn parse(text: &str, is_config: bool) -> Profiles {
    let mut profiles = Profiles::new();
    let mut current = None;
    for line in text.lines() {
        // White space first: a part of the property before. None is needed here.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split(']').next().unwrap_or_default().trim();
            let name = match name.strip_prefix("profile").filter(|name| name.starts_with([' ', '\t'])) {
                Some(name) if is_config => Some(name.trim()),
                _ => (!is_config || name == "default").then_some(name),
            };
            current = name.map(str::to_owned);
            continue;
        }
        let (Some(name), Some((key, value))) = (&current, line.split_once('=')) else { continue };
        let properties = profiles.entry(name.clone()).or_default();
        let value = without_comment(value).trim();
        if !value.is_empty() {
            properties.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    profiles
}

fn without_comment(value: &str) -> &str {
    let comment = [" #", " ;", "\t#", "\t;"].into_iter().filter_map(|sign| value.find(sign)).min();
    comment.map_or(value, |at| &value[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs<'a>(profiles: &'a Profiles, name: &str) -> Vec<(&'a str, &'a str)> {
        let mut pairs: Vec<_> =
            profiles[name].iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_config_file_is_read() {
        let text = "# comment\nregion = ignored\n[default]\nregion=eu-north-1 ; here\n\n[profile  ops ] # of operators\n\
                    role_arn = arn:aws:iam::1:role/x\n s3 =\n  max = 3\n\tother = 4\nsource_profile\t=\tbase\nempty =\nno sign\n\
                    [ops2]\na = b\n[sso-session x]\nsso_region = y\n[profile default2]\na = b\n";
        let profiles = parse(text, true);
        assert_eq!(pairs(&profiles, "default"), [("region", "eu-north-1")]);
        assert_eq!(
            pairs(&profiles, "ops"),
            [("role_arn", "arn:aws:iam::1:role/x"), ("source_profile", "base")]
        );
        let mut names: Vec<_> = profiles.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["default", "default2", "ops"]);
    }

    #[test]
    fn a_secret_may_hold_any_sign() {
        let text =
            "[ops]\r\naws_access_key_id = AKID\r\nAWS_Secret_Access_Key = a#b;c\\d\"e'f=g/h+ # comment\r\n";
        let profiles = parse(text, false);
        assert_eq!(
            pairs(&profiles, "ops"),
            [("aws_access_key_id", "AKID"), ("aws_secret_access_key", "a#b;c\\d\"e'f=g/h+")]
        );
        assert!(parse("[profile ops]\na = b", false).contains_key("profile ops"), "no such word there");
        assert!(parse("]\n[\n=\n[]\na=b", false).contains_key(""));
    }

    #[test]
    fn the_credentials_file_counts() {
        let directory = tempfile::tempdir().unwrap();
        let (config, credentials) = (directory.path().join("config"), directory.path().join("credentials"));
        let environment = Environment::new([
            ("AWS_CONFIG_FILE", config.to_str().unwrap().to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap().to_owned()),
        ]);
        assert!(read(&environment).unwrap().is_empty(), "none is there");
        std::fs::write(&config, "[default]\nregion = x\naws_access_key_id = config\n").unwrap();
        std::fs::write(&credentials, "[default]\naws_access_key_id = credentials\n").unwrap();
        let profiles = read(&environment).unwrap();
        assert_eq!(pairs(&profiles, "default"), [("aws_access_key_id", "credentials"), ("region", "x")]);
        std::fs::write(&config, [0xFF, 0xFE]).unwrap();
        let failure = read(&environment).unwrap_err();
        assert!(failure.to_string().contains("config cannot be read"), "{failure}");
    }
}
