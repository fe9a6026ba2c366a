//! What an admin can try about mail without a Hub and without an idle session.
#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;

fn gpu_culler(config: &Path) -> Command {
    let mut command = Command::cargo_bin("gpu-culler").unwrap();
    command.env_clear().arg("--config").arg(config);
    command.env("JUPYTERHUB_API_URL", "http://127.0.0.1:9/hub/api").env("JUPYTERHUB_API_TOKEN", "t");
    command
}

fn config(folder: &Path, more: &str) -> std::path::PathBuf {
    let file = folder.join("gpu-culler.toml");
    let mails = folder.join("mails");
    fs::create_dir_all(&mails).unwrap();
    let mail = format!(
        "[mail]\nfrom = \"GPU culler <gpu-culler@example.org>\"\nserver = \"file://{}\"\n\
         address = [\"user_info.email\"]\n{more}\n[store]\npath = \"{}\"\n",
        mails.display(),
        folder.join("ledger.sqlite").display()
    );
    fs::write(&file, mail).unwrap();
    file
}

#[test]
fn a_sample_goes_the_whole_way_and_its_recipient_is_masked() {
    let folder = tempfile::tempdir().unwrap();
    let file = config(folder.path(), "");
    let check = gpu_culler(&file).args(["check", "--mail", "admin@example.org"]).output().unwrap();
    let said = String::from_utf8(check.stdout).unwrap();
    assert!(said.contains("a sample went to a…@example.org"), "{said}");
    let mails: Vec<_> = fs::read_dir(folder.path().join("mails")).unwrap().collect();
    let mail = fs::read_to_string(mails[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(mails.len(), 1);
    assert!(mail.contains("To: admin@example.org") && mail.contains("Subject: TEST [gpu-culler]"), "{mail}");
}

#[test]
fn a_preview_shows_the_admins_words_and_a_broken_template_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let templates = folder.path().join("templates");
    fs::create_dir(&templates).unwrap();
    fs::write(templates.join("warning.subject.txt"), "[HPC] {{ subject_name }}").unwrap();
    let file = config(folder.path(), &format!("templates = \"{}\"", templates.display()));
    let preview = gpu_culler(&file).args(["mail-preview", "warning"]).output().unwrap();
    let said = String::from_utf8(preview.stdout).unwrap();
    assert!(said.starts_with("Subject: [HPC] nora/training\n\nHello nora,"), "{said}");
    fs::write(templates.join("stopped.txt"), "\n{{ nobody }}").unwrap();
    let refused = gpu_culler(&file).arg("mail-preview").assert().failure();
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("`nobody` is undefined in stopped.txt, line 2"), "{said}");
    assert!(said.contains("gpu-culler.toml, line 5"), "{said}");
}
