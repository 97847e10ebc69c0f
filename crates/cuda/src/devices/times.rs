//! The times of ops on a device: the notes of the streams, on the host's clock.

use super::{Cuda, Device, Lane};
use crate::error::CudaError;
use weft_engine::Wait;
use weft_engine::trace::DeviceRun;

/// A trace's record of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRuns {
    /// Index of the device.
    pub device: usize,
    /// Its name there.
    pub name: String,
    /// Its purpose.
    pub lane: Lane,
    /// What it ran.
    pub runs: Vec<DeviceRun>,
}

impl Device {
    fn runs(&self, engine: usize, found: &mut Vec<StreamRuns>) {
        let first = found.len();
        for (stream, run) in self.context().runs(engine) {
            let (lane, name) = self.purpose(stream);
            let known = found[first..].iter().position(|stream| stream.name == name);
            let at = known.map_or(found.len(), |known| first + known);
            if at == found.len() {
                found.push(StreamRuns { device: self.index(), name, lane, runs: Vec::new() });
            }
            found[at].runs.push(run);
        }
    }
}

impl Cuda {
    /// Prepares for a trace of the engine that answers this [id](weft_engine::Engine::id): devices set up so far need not
    /// look at their clocks when its first op is issued.
    pub fn begin_times(&self, engine: usize) {
        for device in self.known() {
            let context = device.context();
            context.forget_times(engine);
            if let Ok(_entered) = context.enter() {
                context.prepare_clock();
            }
        }
    }

    /// Waits until the issued work of a traced engine has ended. A device that has failed is not waited for.
    pub fn wait_for_times(&self, engine: usize, wait: &mut Wait<'_>) -> Result<(), CudaError> {
        self.known().iter().try_for_each(|device| device.context().wait_for_times(engine, wait))
    }

    /// When ops of a traced engine ran, stream by stream, as far as is known now.
    #[must_use]
    pub fn times(&self, engine: usize) -> Vec<StreamRuns> {
        let mut found = Vec::new();
        for device in self.known() {
            device.runs(engine, &mut found);
        }
        found
    }

    /// Forgets them, when the trace is over.
    pub fn end_times(&self, engine: usize) {
        self.known().iter().for_each(|device| device.context().forget_times(engine));
    }
}
