//! What may happen: steps of a few minutes, most of them quiet.

use gpu_culler::policy::Mode;
use proptest::prelude::*;

use crate::truth::SESSIONS;

/// Something that happens to one session.
#[derive(Clone, Copy, Debug)]
pub enum Doing {
    Work(usize),
    Rest(usize),
    Burst(usize),
    TakeCard,
    GiveCardBack,
    KernelBusy,
    KernelIdle,
    UseKernel,
    Connect,
    Disconnect,
    Restart,
    Leave,
    CardsReadable(bool),
    CardReadable(bool),
    KernelsReadable(bool),
    Pending(bool),
    Patchy,
    /// It says from now on that it is needed for so many minutes from its start on, or no longer says so.
    Declare(Option<i64>),
    /// Its owner or an admin wants to keep it: one of the choices.
    Keep {
        choice: usize,
        admin: bool,
    },
}

/// Something that happens to everybody.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Hub(bool),
    /// The Hub's list lacks somebody from now on, or is whole again.
    Lacks(Option<usize>),
    Mail(bool),
    ServiceRestarts,
    /// The service dies while its warnings are on their way.
    CutShort,
    ClockSet(i64),
    Limits(bool),
    Mode(Mode),
    Rules(Rules),
    /// So many wait for a card, or it is not known how many.
    Waiting(Option<u32>),
    /// An admin lifts the freeze, if there is one.
    Lift,
}

/// The rules that the admin may set.
#[derive(Clone, Copy, Debug)]
pub enum Rules {
    None,
    /// Half of the limits for the first session.
    Strict,
    /// Twice the limits for the first session.
    Patient,
    /// The first session is exempt for so many minutes.
    Exempt(i64),
}

/// What may be kept, in minutes.
pub const CHOICES: [i64; 2] = [10, 40];

#[derive(Clone, Debug)]
pub struct Step {
    pub minutes: i64,
    pub change: Option<Change>,
    pub doings: Vec<(usize, Doing)>,
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        3 => (0..2usize).prop_map(Doing::Work),
        6 => (0..2usize).prop_map(Doing::Rest),
        2 => (0..2usize).prop_map(Doing::Burst),
        1 => Just(Doing::TakeCard),
        1 => Just(Doing::GiveCardBack),
        2 => Just(Doing::KernelBusy),
        4 => Just(Doing::KernelIdle),
        2 => Just(Doing::UseKernel),
        2 => Just(Doing::Connect),
        4 => Just(Doing::Disconnect),
        1 => Just(Doing::Restart),
        1 => Just(Doing::Leave),
        2 => prop::bool::weighted(0.8).prop_map(Doing::CardsReadable),
        2 => prop::bool::weighted(0.8).prop_map(Doing::CardReadable),
        2 => prop::bool::weighted(0.8).prop_map(Doing::KernelsReadable),
        2 => prop::bool::weighted(0.2).prop_map(Doing::Pending),
        1 => Just(Doing::Patchy),
        1 => prop::option::weighted(0.8, 1..200i64).prop_map(Doing::Declare),
        1 => (0..CHOICES.len(), prop::bool::weighted(0.3)).prop_map(|(choice, admin)| Doing::Keep { choice, admin }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => prop::bool::weighted(0.7).prop_map(Change::Hub),
        3 => prop::bool::weighted(0.7).prop_map(Change::Mail),
        1 => Just(Change::ServiceRestarts),
        1 => Just(Change::CutShort),
        1 => prop::sample::select(vec![-120, -40, -15, 60, 120]).prop_map(Change::ClockSet),
        1 => prop::option::of(0..SESSIONS).prop_map(Change::Lacks),
        1 => any::<bool>().prop_map(Change::Limits),
        1 => Just(Change::Lift),
        2 => prop::option::weighted(0.8, 0..4u32).prop_map(Change::Waiting),
        1 => prop_oneof![
            Just(Rules::None),
            Just(Rules::Strict),
            Just(Rules::Patient),
            (5..60i64).prop_map(Rules::Exempt),
        ].prop_map(Change::Rules),
        1 => prop_oneof![
            1 => Just(Change::Mode(Mode::Observe)),
            1 => Just(Change::Mode(Mode::Warn)),
            3 => Just(Change::Mode(Mode::Enforce)),
        ],
    ]
}

pub fn history() -> impl Strategy<Value = Vec<Step>> {
    let doings = prop::collection::vec((0..SESSIONS, doing()), 0..3);
    let step = (4..=6i64, prop::option::weighted(0.2, change()), doings, prop::bool::weighted(0.6));
    // Most steps are quiet, or nobody would ever be idle for long enough.
    let step = step.prop_map(|(minutes, change, doings, quiet)| {
        let (change, doings) = if quiet { (None, Vec::new()) } else { (change, doings) };
        Step { minutes, change, doings }
    });
    prop::collection::vec(step, 1..40)
}
