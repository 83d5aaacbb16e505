//! Certificates and TLS contexts.

use crate::WireError;
use std::path::Path;

/// TLS for a listener, plus the RSA key that caching_sha2_password uses on plain connections.
#[derive(Clone)]
pub struct ServerTls {}

impl ServerTls {
    /// Reads `pointsman-{ca,cert,key}.pem` from `dir`; makes a self-signed set first where there is none.
    pub fn load_or_create(_dir: &Path) -> Result<Self, WireError> {
        unimplemented!()
    }
}
