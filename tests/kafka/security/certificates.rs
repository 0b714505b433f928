//! Certificates of authorities, brokers and clients.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::symm::Cipher;
use openssl::x509::extension::{BasicConstraints, KeyUsage, SubjectAlternativeName};
use openssl::x509::{X509, X509Name, X509NameBuilder};

const DAY_SECONDS: i64 = 86_400;

/// A certificate and its key.
pub struct Identity {
    certificate: X509,
    key: PKey<Private>,
}

/// Returns the name with these parts, the most general one first.
fn name(parts: &[(&str, &str)]) -> Result<X509Name> {
    let mut name = X509NameBuilder::new()?;
    parts.iter().try_for_each(|(part, value)| name.append_entry_by_text(part, value))?;
    Ok(name.build())
}

impl Identity {
    /// Returns an authority.
    pub fn authority(common_name: &str) -> Result<Self> {
        Self::issued(None, &[("CN", common_name)], &[], -1, 30)
    }

    /// Returns what this authority has issued: for a subject and, if it is a broker, addresses and names of hosts; a client may have URIs.
    /// It is valid from `from` to `to`, in days from now.
    pub fn issue(&self, subject: &[(&str, &str)], hosts: &[&str], from: i64, to: i64) -> Result<Self> {
        Self::issued(Some(self), subject, hosts, from, to)
    }

    fn issued(by: Option<&Self>, subject: &[(&str, &str)], hosts: &[&str], from: i64, to: i64) -> Result<Self> {
        let key = PKey::from_rsa(Rsa::generate(2048)?)?;
        let subject = name(subject)?;
        let mut builder = X509::builder()?;
        builder.set_version(2)?;
        let mut serial = BigNum::new()?;
        serial.rand(120, MsbOption::MAYBE_ZERO, false)?;
        let serial = serial.to_asn1_integer()?;
        builder.set_serial_number(&serial)?;
        builder.set_subject_name(&subject)?;
        builder.set_issuer_name(by.map_or(&*subject, |by| by.certificate.subject_name()))?;
        builder.set_pubkey(&key)?;
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
        let (not_before, not_after) = (Asn1Time::from_unix(now + from * DAY_SECONDS)?, Asn1Time::from_unix(now + to * DAY_SECONDS)?);
        builder.set_not_before(&not_before)?;
        builder.set_not_after(&not_after)?;
        if by.is_none() {
            builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
            builder.append_extension(KeyUsage::new().critical().key_cert_sign().crl_sign().build()?)?;
        }
        if !hosts.is_empty() {
            let mut names = SubjectAlternativeName::new();
            for host in hosts {
                if host.parse::<std::net::IpAddr>().is_ok() {
                    names.ip(host)
                } else if host.contains("://") {
                    names.uri(host)
                } else {
                    names.dns(host)
                };
            }
            let names = names.build(&builder.x509v3_context(None, None))?;
            builder.append_extension(names)?;
        }
        builder.sign(by.map_or(&key, |by| &by.key), MessageDigest::sha256())?;
        Ok(Self { certificate: builder.build(), key })
    }

    /// Returns the certificate as PEM.
    pub fn certificate(&self) -> Result<String> {
        Ok(String::from_utf8(self.certificate.to_pem()?)?)
    }

    /// Returns the key as PEM.
    pub fn key(&self) -> Result<String> {
        Ok(String::from_utf8(self.key.private_key_to_pem_pkcs8()?)?)
    }

    /// Returns the key as PEM, encrypted.
    pub fn encrypted_key(&self, passphrase: &str) -> Result<String> {
        Ok(String::from_utf8(self.key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_256_cbc(), passphrase.as_bytes())?)?)
    }
}
