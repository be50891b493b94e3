// The bank as a graph of GNU Radio: one block for each filter, one thread for each block. Its filters decimate and
// interpolate themselves.
#include "peer.h"
#include <gnuradio/blocks/add_blk.h>
#include <gnuradio/blocks/multiply_const.h>
#include <gnuradio/blocks/vector_sink.h>
#include <gnuradio/blocks/vector_source.h>
#include <gnuradio/filter/fir_filter_blk.h>
#include <gnuradio/filter/interp_fir_filter.h>
#include <gnuradio/top_block.h>
// The windows of both filters are filled before output 64, the second of the stream.
enum { TAPS = 32, BANDS = 8, SKIPPED = 2 * TAPS };
static i64 n;
static gr::top_block_sptr graph;
static gr::blocks::vector_source_f::sptr source;
static gr::blocks::vector_sink_f::sptr sink;
// GNU Radio applies taps backwards.
static std::vector<float> band_pass(int b) {
    std::vector<float> h(TAPS);
    for (int i = 0; i < TAPS; i++) {
        double t = M_PI * (i - (TAPS - 1) / 2.0) / BANDS, low = t == 0 ? 1 : sin(t / 2) / (t / 2);
        h[TAPS - 1 - i] = (0.54 - 0.46 * cos(2 * M_PI * i / (TAPS - 1))) * low * cos(t * (b + 0.5)) / BANDS;
    }
    return h;
}
void setup(i64 size) {
    n = size / BANDS * BANDS;
    // One sample before the others makes the first whole window begin with the first sample.
    i64 samples = n + SKIPPED;
    std::vector<float> x(samples);
    for (i64 i = 1; i < samples; i++) x[i] = unit((uint32_t)(i - 1), 1) - 0.5f;
    graph = gr::make_top_block("filter_bank");
    source = gr::blocks::vector_source_f::make(x);
    sink = gr::blocks::vector_sink_f::make(1, samples);
    auto sum = gr::blocks::add_ff::make();
    for (int b = 0; b < BANDS; b++) {
        auto kept = gr::filter::fir_filter_fff::make(BANDS, band_pass(b));
        auto scaled = gr::blocks::multiply_const_ff::make((1 + 0.25f * b) * BANDS);
        auto band = gr::filter::interp_fir_filter_fff::make(BANDS, band_pass(b));
        graph->connect(source, 0, kept, 0);
        graph->connect(kept, 0, scaled, 0);
        graph->connect(scaled, 0, band, 0);
        graph->connect(band, 0, sum, b);
    }
    graph->connect(sum, 0, sink, 0);
}
void run() {
    source->rewind();
    sink->reset();
    graph->run();
}
double checksum() { return weighed(sink->data().data() + SKIPPED, n); }
