//! The scene: what the pretended driver and cards are doing, from a JSON file that may change while it is read.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;

/// Call name → how it fails: an NVML error's name, its number, or `HANG`.
pub type Errors = HashMap<String, String>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scene {
    pub driver: String,
    pub errors: Errors,
    pub devices: Vec<Device>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    pub uuid: String,
    pub name: String,
    pub memory_total: u64,
    pub errors: Errors,
    pub load: Vec<Load>,
    pub processes: Vec<Process>,
    /// Seconds by which the driver's time stamps differ from Unix time (some count from boot).
    pub clock: f64,
    /// Whether MIG is on.
    pub mig: bool,
    /// The slots of a card with MIG on, some of them empty. An instance is told like a card.
    pub instances: Vec<Option<Device>>,
    /// The GPU instance that an instance belongs to.
    pub gi: u32,
    /// Whether the card has performance counters (Hopper and newer).
    pub gpm: bool,
    /// Whether process lists have the longer entries of drivers 535.43 to 535.86.
    pub long_entries: bool,
    /// What it draws, in watts; absent, the card does not tell.
    pub watts: Option<f64>,
    /// The limit of that.
    pub power_limit: Option<f64>,
    /// Answers given as they stand, however impossible.
    pub raw: Raw,
}

/// Answers given as they stand. What is absent is answered from the loads.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Raw {
    /// Utilization of the card and of its memory.
    pub rates: Option<(u32, u32)>,
    /// Time stamp and percent, given whatever was seen before.
    pub ring: Option<Vec<(u64, u64)>>,
    /// Pid, time stamp and percent of SM.
    pub shares: Option<Vec<(u32, u64, u32)>>,
    /// GPM's metrics by number; null is NaN, since JSON has none.
    pub gpm: HashMap<u32, Option<f64>>,
    pub encode: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    pub pid: u32,
    /// Bytes; absent = "not available", as on some platforms.
    pub memory: Option<u64>,
    pub load: Vec<Load>,
    /// Listed as a graphics process instead of a compute one.
    pub graphics: bool,
}

/// Work between two instants (unix seconds), in percent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    pub from: f64,
    /// Absent or null: until further notice.
    pub to: Option<f64>,
    /// Share of the SMs.
    pub sm: f64,
    /// Share of the time in which a kernel runs, where that is more: a kernel may use one SM only.
    pub graphics: f64,
    pub tensor: f64,
    pub dram: f64,
    pub encode: f64,
    pub decode: f64,
}

impl Load {
    /// The share of the time in which a kernel runs.
    pub fn busy(&self) -> f64 {
        self.sm.max(self.graphics)
    }
}

impl Process {
    /// A real driver lists only processes that exist.
    pub fn exists(&self) -> bool {
        Path::new("/proc").join(self.pid.to_string()).exists()
    }
}

/// What tells one content of the file from the next without reading it.
type Stamp = (u64, i64, i64, u64);

#[derive(Default)]
struct Loaded {
    stamp: Option<Stamp>,
    scene: Arc<Scene>,
}

/// The scene as it is now. A missing or broken file leaves the previous one in force.
pub fn current() -> Arc<Scene> {
    static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);
    let mut guard = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = guard.get_or_insert_with(Loaded::default);
    if let Some(path) = path() {
        loaded.refresh(path);
    }
    Arc::clone(&loaded.scene)
}

impl Loaded {
    fn refresh(&mut self, path: &Path) {
        let Ok(meta) = fs::metadata(path) else { return };
        let stamp = (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len());
        if self.stamp == Some(stamp) {
            return;
        }
        let Ok(text) = fs::read(path) else { return };
        // A broken file keeps its stamp unread, so that a half-written one is tried again.
        if let Ok(scene) = serde_json::from_slice(&text) {
            self.scene = Arc::new(scene);
            self.stamp = Some(stamp);
        }
    }
}

/// `<library>.scene.json` where it exists, so that each copy of the library has its own scene;
/// otherwise what `FAKE_NVML_SCENE` names.
fn path() -> Option<&'static Path> {
    static OF_LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    static OF_ENVIRONMENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let of_library = OF_LIBRARY.get_or_init(|| {
        let mut path = own_file()?.into_os_string();
        path.push(".scene.json");
        Some(PathBuf::from(path))
    });
    of_library.as_deref().filter(|path| path.exists()).or_else(|| {
        OF_ENVIRONMENT.get_or_init(|| std::env::var_os("FAKE_NVML_SCENE").map(PathBuf::from)).as_deref()
    })
}

/// `Dl_info` of `dladdr(3)`.
#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

/// Notes beside the scene how often the library is open, for tests that want to see it closed.
pub fn note_users(users: usize) {
    let own = own_file().map(|path| path.display().to_string());
    if let Some(own) = own.filter(|own| Path::new(&format!("{own}.scene.json")).exists()) {
        let _ = fs::write(format!("{own}.users"), users.to_string());
    }
}

/// The file this library was loaded from.
fn own_file() -> Option<PathBuf> {
    let mut info = DlInfo {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        symbol: std::ptr::null(),
        address: std::ptr::null_mut(),
    };
    let here = own_file as *const () as *const c_void;
    // SAFETY: `info` is writable and has the layout that dladdr fills; any address may be asked for.
    let found = unsafe { dladdr(here, &mut info) } != 0 && !info.file.is_null();
    // SAFETY: dladdr answered with a C string that lives as long as this library.
    found.then(|| PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(info.file) }.to_bytes())))
}
