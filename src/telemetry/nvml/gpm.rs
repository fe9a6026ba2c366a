//! GPM, the performance counters of Hopper and newer. Two samples give the means between them as
//! doubles, and nothing that happened between them is left out.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};

use super::read::soft;
use super::words::words;
use crate::domain::{GpuId, Ratio};
use crate::telemetry::window::peak;

/// Samples closer to each other than this make no valid pair.
const APART: Duration = Duration::from_millis(100);

/// Over more than this a mean hides a short burst: it then proves work, but no rest.
const LONGEST: Duration = Duration::from_secs(10);

/// That a kernel runs at all, and the share of the SMs it has: one warp shows in the first only.
const KERNELS: [GpmMetricId; 2] = [GpmMetricId::GraphicsUtil, GpmMetricId::SmUtil];

/// Video and image engines. Which of them exist differs, so they prove work only.
const MEDIA: [GpmMetricId; 8] = [
    GpmMetricId::Nvdec0Util,
    GpmMetricId::Nvdec1Util,
    GpmMetricId::Nvdec2Util,
    GpmMetricId::Nvdec3Util,
    GpmMetricId::Nvjpg0Util,
    GpmMetricId::Nvjpg1Util,
    GpmMetricId::Nvofa0Util,
    GpmMetricId::Nvofa1Util,
];

/// What GPM has to say in one poll.
#[derive(Clone, Debug, PartialEq)]
pub enum GpmRead {
    /// This card or driver has none.
    NotOffered,
    /// The first sample; it takes a second one to know anything.
    First,
    /// What happened since the last poll.
    Pair(Pair),
    /// It could not be read.
    Failed(String),
}

/// The means between two samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// How far back from now it speaks for.
    pub reach: Duration,
    /// Kernels.
    pub sm: Result<Ratio, String>,
    /// Memory bandwidth.
    pub dram: Result<Ratio, String>,
    /// Tensor cores, where they are counted.
    pub tensor: Option<Result<Ratio, String>>,
    /// The busiest of the video and image engines that gave a reading.
    pub media: Option<Ratio>,
}

impl Pair {
    /// Reads the answer to each metric that was asked for. What a card does not count is no reading;
    /// what it counts has to be a share of its activity: a NaN compares like a zero and is none.
    fn new(span: Duration, answers: &[(GpmMetricId, Result<f64, NvmlError>)]) -> Self {
        let of = |wanted: GpmMetricId| {
            let (_, answer) = answers.iter().find(|(id, _)| *id == wanted)?;
            match answer {
                Err(NvmlError::NotSupported | NvmlError::NotFound) => None,
                Err(error) => Some(Err(format!("GPM does not tell {wanted:?}: {}", words(error)))),
                Ok(percent) => Some(
                    Ratio::percent(*percent).ok_or_else(|| format!("GPM gives a {wanted:?} of {percent} %")),
                ),
            }
        };
        let required = |reading: Option<Result<Ratio, String>>| {
            reading.unwrap_or_else(|| Err("GPM leaves out what it should count".to_owned()))
        };
        let busiest = |a: Ratio, b: Result<Ratio, String>| b.map(|b| a.max(b));
        let [graphics, sm] = KERNELS.map(of);
        Self {
            reach: if span <= LONGEST { span } else { Duration::ZERO },
            sm: match (graphics, sm) {
                (Some(graphics), Some(sm)) => graphics.and_then(|graphics| busiest(graphics, sm)),
                (one, other) => required(one.or(other)),
            },
            dram: required(of(GpmMetricId::DramBwUtil)),
            tensor: of(GpmMetricId::AnyTensorUtil),
            media: MEDIA.into_iter().filter_map(|id| of(id)?.ok()).fold(None, |a, b| peak(a, Some(b))),
        }
    }
}

/// The last sample of each card, kept while NVML is open.
pub struct Samples<'nvml> {
    nvml: &'nvml Nvml,
    cards: BTreeMap<GpuId, Held<'nvml>>,
    polled: Option<Instant>,
}

enum Held<'nvml> {
    NotOffered,
    Nothing,
    Sample(Instant, GpmSample<'nvml>),
}

impl<'nvml> Samples<'nvml> {
    /// None yet.
    pub fn new(nvml: &'nvml Nvml) -> Self {
        Self { nvml, cards: BTreeMap::new(), polled: None }
    }

    /// Whether any card is waiting for the second sample of a pair.
    pub fn any(&self) -> bool {
        self.cards.values().any(|held| matches!(held, Held::Sample(..)))
    }

    /// Waits until a sample taken now makes a valid pair with the last one.
    pub fn wait_apart(&self) {
        if let Some(polled) = self.polled.filter(|_| self.any()) {
            thread::sleep(APART.saturating_sub(polled.elapsed()));
        }
    }

    /// All cards were read.
    pub fn all_read(&mut self) {
        self.polled = Some(Instant::now());
    }

    /// Takes a sample of a card, or of one GPU instance of it, and tells what happened since the last.
    pub fn read(
        &mut self,
        card: &Device<'nvml>,
        instance: Option<u32>,
        id: &GpuId,
        at: Instant,
    ) -> Result<GpmRead, NvmlError> {
        let before = match self.cards.remove(id) {
            Some(held) => held,
            None => match self.offered(card)? {
                Ok(true) => Held::Nothing,
                Ok(false) => Held::NotOffered,
                Err(reason) => return Ok(GpmRead::Failed(reason)),
            },
        };
        let sample = match (&before, instance) {
            (Held::NotOffered, _) => Err(NvmlError::NotSupported),
            (_, None) => card.gpm_sample(),
            (_, Some(instance)) => card.gpm_mig_sample(instance),
        };
        let sample = match sample {
            Err(error) if is_absent(&error) => {
                self.cards.insert(id.clone(), Held::NotOffered);
                return Ok(GpmRead::NotOffered);
            }
            other => soft(other)?,
        };
        let sample = match sample {
            Ok(sample) => sample,
            Err(reason) => return Ok(GpmRead::Failed(reason)),
        };
        let read = match &before {
            Held::Sample(then, first) => self.pair(at.saturating_duration_since(*then), first, &sample)?,
            Held::NotOffered | Held::Nothing => GpmRead::First,
        };
        self.cards.insert(id.clone(), Held::Sample(at, sample));
        Ok(read)
    }

    fn offered(&self, card: &Device<'nvml>) -> Result<Result<bool, String>, NvmlError> {
        // Without this one the wrapper cannot let go of a sample.
        if self.nvml.lib().nvmlGpmSampleFree.is_err() {
            return Ok(Ok(false));
        }
        match card.gpm_support() {
            Err(error) if is_absent(&error) => Ok(Ok(false)),
            other => soft(other),
        }
    }

    fn pair(
        &self,
        span: Duration,
        first: &GpmSample<'nvml>,
        second: &GpmSample<'nvml>,
    ) -> Result<GpmRead, NvmlError> {
        let asked: Vec<GpmMetricId> = KERNELS
            .into_iter()
            .chain([GpmMetricId::DramBwUtil, GpmMetricId::AnyTensorUtil])
            .chain(MEDIA)
            .collect();
        let answers = match gpm_metrics_get(self.nvml, first, second, &asked) {
            Err(error) if is_absent(&error) => return Ok(GpmRead::Failed(words(&error))),
            other => soft(other)?,
        };
        Ok(match answers {
            Err(reason) => GpmRead::Failed(reason),
            Ok(answers) => {
                let values = answers.into_iter().map(|answer| answer.map(|result| result.value));
                GpmRead::Pair(Pair::new(span, &asked.into_iter().zip(values).collect::<Vec<_>>()))
            }
        })
    }
}

/// Whether a call does not exist here, which is no trouble.
fn is_absent(error: &NvmlError) -> bool {
    matches!(error, NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Duration = Duration::from_secs(2);

    fn pair(answers: impl IntoIterator<Item = (GpmMetricId, Result<f64, NvmlError>)>) -> Pair {
        let quiet = KERNELS.into_iter().chain([GpmMetricId::DramBwUtil, GpmMetricId::AnyTensorUtil]);
        let all = answers.into_iter().chain(quiet.map(|id| (id, Ok(0.0))));
        Pair::new(TWO, &all.collect::<Vec<_>>())
    }

    #[test]
    fn a_trace_of_work_is_not_rounded_away() {
        let trace = pair([(GpmMetricId::GraphicsUtil, Ok(0.015))]);
        assert_eq!((trace.sm, trace.reach), (Ok(Ratio::percent(0.015).unwrap()), TWO));
        let tensor = pair([(GpmMetricId::AnyTensorUtil, Ok(0.000_1))]);
        assert_eq!(tensor.tensor, Some(Ok(Ratio::percent(0.000_1).unwrap())));
    }

    #[test]
    fn what_is_no_share_of_activity_is_unreadable() {
        for value in [f64::NAN, -0.1, 106.0, f64::INFINITY, 140_737_488_355_328.0, 9.223_372_036_854_776e18] {
            for id in KERNELS {
                assert!(pair([(id, Ok(value))]).sm.is_err(), "{id:?} of {value}");
            }
            assert!(pair([(GpmMetricId::DramBwUtil, Ok(value))]).dram.is_err(), "{value}");
            assert!(pair([(GpmMetricId::AnyTensorUtil, Ok(value))]).tensor.unwrap().is_err(), "{value}");
            assert_eq!(pair([(GpmMetricId::Nvdec0Util, Ok(value))]).media, None, "{value}");
        }
    }

    #[test]
    fn what_a_card_does_not_count_is_left_out_and_not_zero() {
        let without = pair([(GpmMetricId::AnyTensorUtil, Err(NvmlError::NotSupported))]);
        assert_eq!((without.tensor, without.media), (None, None));
        assert!(pair([(GpmMetricId::DramBwUtil, Err(NvmlError::NotSupported))]).dram.is_err());
        assert!(pair([(GpmMetricId::SmUtil, Err(NvmlError::Unknown))]).sm.is_err());
        let no_sm =
            pair([(GpmMetricId::SmUtil, Err(NvmlError::NotSupported)), (GpmMetricId::GraphicsUtil, Ok(3.0))]);
        assert_eq!(no_sm.sm, Ok(Ratio::percent(3.0).unwrap()));
    }

    #[test]
    fn a_mean_over_long_proves_no_rest() {
        assert_eq!(Pair::new(Duration::from_secs(10), &[]).reach, Duration::from_secs(10));
        assert_eq!(Pair::new(Duration::from_secs(60), &[]).reach, Duration::ZERO);
    }
}
