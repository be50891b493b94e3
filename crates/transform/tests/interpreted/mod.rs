//! Device that is the interpreter with its own loading of modules.

/// All methods of a `Backend` except `load`, forwarded to the field `interp`.
macro_rules! all_but_load {
    () => {
        fn machine(&self) -> &Machine {
            self.interp.machine()
        }
        fn allocate(&self, bytes: u64) -> Result<u64> {
            self.interp.allocate(bytes)
        }
        fn free(&self, address: u64) -> Result<()> {
            self.interp.free(address)
        }
        fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()> {
            self.interp.write(stream, address, bytes)
        }
        fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
            self.interp.read(stream, address, bytes)
        }
        fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
            self.interp.copy(stream, to, from, bytes)
        }
        fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
            self.interp.fill(stream, address, byte, bytes)
        }
        fn create_stream(&self) -> Result<Stream> {
            self.interp.create_stream()
        }
        fn synchronise_stream(&self, stream: Stream) -> Result<()> {
            self.interp.synchronise_stream(stream)
        }
        fn synchronise(&self) -> Result<()> {
            self.interp.synchronise()
        }
        fn destroy_stream(&self, stream: Stream) -> Result<()> {
            self.interp.destroy_stream(stream)
        }
        fn create_event(&self) -> Result<EventId> {
            self.interp.create_event()
        }
        fn destroy_event(&self, event: EventId) -> Result<()> {
            self.interp.destroy_event(event)
        }
        fn record_event(&self, event: EventId, stream: Stream) -> Result<()> {
            self.interp.record_event(event, stream)
        }
        fn wait_event(&self, stream: Stream, event: EventId) -> Result<()> {
            self.interp.wait_event(stream, event)
        }
        fn query_event(&self, event: EventId) -> Result<bool> {
            self.interp.query_event(event)
        }
        fn synchronise_event(&self, event: EventId) -> Result<()> {
            self.interp.synchronise_event(event)
        }
        fn elapsed(&self, start: EventId, end: EventId) -> Result<Duration> {
            self.interp.elapsed(start, end)
        }
        fn memory(&self) -> MemoryUse {
            self.interp.memory()
        }
        fn trim(&self) -> Result<()> {
            self.interp.trim()
        }
    };
}
pub(crate) use all_but_load;
