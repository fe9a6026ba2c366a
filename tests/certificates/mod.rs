//! Certificates of a test's own.

use std::path::Path;
use std::process::Command;

/// A CA and two certificates signed by it. One that signs itself would not do: a CA's own
/// certificate is refused as a server's.
pub fn certificates(room: &Path) {
    let openssl = |arguments: &str| {
        let run = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(room)
            .output()
            .unwrap_or_else(|e| panic!("cannot run openssl: {e}"));
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!(
        "req -x509 {KEY} -keyout ca.key -out ca.pem -days 2 -subj /CN=lab-ca \
         -addext keyUsage=critical,keyCertSign"
    ));
    for (name, names) in [("good", "DNS:localhost,IP:127.0.0.1"), ("other", "DNS:other.example")] {
        std::fs::write(room.join("names"), format!("subjectAltName={names}\n")).unwrap();
        openssl(&format!("req {KEY} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile names -out {name}.pem"
        ));
    }
}
