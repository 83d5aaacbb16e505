//! The variables that tell where AWS is and who pointsman is there, as AWS's own SDKs read them.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// What is read; nothing else of the environment is kept.
const NAMES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_DEFAULT_REGION",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_RDS",
    "AWS_ENDPOINT_URL_STS",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "ECS_CONTAINER_METADATA_URI_V4",
    "HOME",
];

/// Variables that are set, and not to nothing.
#[derive(Clone, Default)]
pub struct Environment(HashMap<String, String>);

// Some are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.0.keys().collect();
        names.sort();
        f.debug_tuple("Environment").field(&names).finish()
    }
}

impl Environment {
    /// The process's own.
    pub fn of_process() -> Self {
        Self::new(NAMES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?))))
    }
    /// Of these.
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let set = variables.into_iter().map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Self(set.filter(|(_, value)| !value.is_empty()).collect())
    }
    /// A variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(NAMES.contains(&name), "{name} is not read");
        self.0.get(name).map(String::as_str)
    }
    /// Whether a switch is on.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
    /// A file that a variable names, else one in the home directory.
    pub fn file(&self, name: &str, in_home: &str) -> Option<PathBuf> {
        let in_home = || Some(PathBuf::from(self.get("HOME")?).join(in_home));
        self.get(name).map(PathBuf::from).or_else(in_home)
    }
    /// Where a service is asked, if not where AWS has it; without the final slash. `variable` is AWS_ENDPOINT_URL_RDS, for example.
    pub fn endpoint(&self, variable: &str) -> Option<&str> {
        let url = self.get(variable).or_else(|| self.get("AWS_ENDPOINT_URL"))?;
        Some(url.trim_end_matches('/'))
    }
    /// Where the instance metadata service is, without the final slash.
    pub fn instance_metadata(&self) -> &str {
        match self.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
            Some(url) => url.trim_end_matches('/'),
            None => match self.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE") {
                Some(mode) if mode.eq_ignore_ascii_case("ipv6") => "http://[fd00:ec2::254]",
                _ => "http://169.254.169.254",
            },
        }
    }
    /// The Region that services without a Region of their own are asked in.
    pub fn region(&self) -> Option<&str> {
        self.get("AWS_REGION").or_else(|| self.get("AWS_DEFAULT_REGION"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&'static str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| (*name, (*value).to_owned())))
    }

    #[test]
    fn variables_set_to_nothing_are_not_set() {
        let set = environment(&[("AWS_REGION", " "), ("AWS_DEFAULT_REGION", "eu-north-1\n")]);
        assert_eq!(set.region(), Some("eu-north-1"));
        assert_eq!(set.get("AWS_REGION"), None);
        assert_eq!(
            environment(&[("HOME", "/h")]).file("AWS_CONFIG_FILE", ".aws/config").unwrap().to_str(),
            Some("/h/.aws/config")
        );
        let named = environment(&[("HOME", "/h"), ("AWS_CONFIG_FILE", "/c")]);
        assert_eq!(named.file("AWS_CONFIG_FILE", ".aws/config").unwrap().to_str(), Some("/c"));
        assert_eq!(environment(&[]).file("AWS_CONFIG_FILE", ".aws/config"), None);
    }

    #[test]
    fn services_are_where_variables_say() {
        assert_eq!(environment(&[]).instance_metadata(), "http://169.254.169.254");
        let six = environment(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6")]);
        assert_eq!(six.instance_metadata(), "http://[fd00:ec2::254]");
        let own = environment(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1/")]);
        assert_eq!(own.instance_metadata(), "http://127.0.0.1:1");
        assert_eq!(own.endpoint("AWS_ENDPOINT_URL_RDS"), None);
        let both = environment(&[("AWS_ENDPOINT_URL", "http://a/"), ("AWS_ENDPOINT_URL_RDS", "http://b/")]);
        assert_eq!(both.endpoint("AWS_ENDPOINT_URL_RDS"), Some("http://b"));
        assert_eq!(both.endpoint("AWS_ENDPOINT_URL_STS"), Some("http://a"));
        assert!(environment(&[("AWS_EC2_METADATA_DISABLED", "True")]).is_true("AWS_EC2_METADATA_DISABLED"));
    }

    #[test]
    fn no_value_is_shown() {
        let shown = format!("{:?}", environment(&[("AWS_SECRET_ACCESS_KEY", "hush")]));
        assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && !shown.contains("hush"), "{shown}");
    }
}
