// The receiver as a graph of GNU Radio: one block for each filter, one thread for each block.
#include "peer.h"
#include <gnuradio/blocks/add_blk.h>
#include <gnuradio/blocks/delay.h>
#include <gnuradio/blocks/multiply.h>
#include <gnuradio/blocks/multiply_const.h>
#include <gnuradio/blocks/sub.h>
#include <gnuradio/blocks/transcendental.h>
#include <gnuradio/blocks/vector_sink.h>
#include <gnuradio/blocks/vector_source.h>
#include <gnuradio/filter/fir_filter_blk.h>
#include <gnuradio/top_block.h>
enum { TAPS = 64, BANDS = 10, SKIPPED = 80 };
static i64 n;
static gr::top_block_sptr graph;
static gr::blocks::vector_source_f::sptr source;
static gr::blocks::vector_sink_f::sptr sink;
// GNU Radio applies taps backwards.
static std::vector<float> backwards(double rate, double cutoff) {
    std::vector<float> h(TAPS);
    low_pass(h.data(), TAPS, rate, cutoff, TAPS / 2);
    std::reverse(h.begin(), h.end());
    return h;
}
void setup(i64 size) {
    n = size;
    // One sample before the others makes the first whole window begin with the first sample.
    i64 samples = 4 * (n + SKIPPED);
    std::vector<float> x(samples);
    for (i64 i = 1; i < samples; i++) x[i] = unit((uint32_t)(i - 1), 1) - 0.5f;
    graph = gr::make_top_block("fm_radio");
    source = gr::blocks::vector_source_f::make(x);
    sink = gr::blocks::vector_sink_f::make(1, n + SKIPPED);
    auto front = gr::filter::fir_filter_fff::make(4, backwards(250000, 60000));
    auto before = gr::blocks::delay::make(sizeof(float), 1);
    auto product = gr::blocks::multiply_ff::make();
    auto angle = gr::blocks::transcendental::make("atan", "float");
    auto gain = gr::blocks::multiply_const_ff::make(62500 / (7500 * M_PI));
    auto sum = gr::blocks::add_ff::make();
    graph->connect(source, 0, front, 0);
    graph->connect(front, 0, before, 0);
    graph->connect(front, 0, product, 0);
    graph->connect(before, 0, product, 1);
    graph->connect(product, 0, angle, 0);
    graph->connect(angle, 0, gain, 0);
    for (int b = 0; b < BANDS; b++) {
        auto high = gr::filter::fir_filter_fff::make(1, backwards(62500, 55 * pow(1.6, b + 1)));
        auto low = gr::filter::fir_filter_fff::make(1, backwards(62500, 55 * pow(1.6, b)));
        auto band = gr::blocks::sub_ff::make();
        auto scaled = gr::blocks::multiply_const_ff::make(b + 1);
        graph->connect(gain, 0, high, 0);
        graph->connect(gain, 0, low, 0);
        graph->connect(high, 0, band, 0);
        graph->connect(low, 0, band, 1);
        graph->connect(band, 0, scaled, 0);
        graph->connect(scaled, 0, sum, b);
    }
    graph->connect(sum, 0, sink, 0);
}
void run() {
    source->rewind();
    sink->reset();
    graph->run();
}
double checksum() { return weighed(sink->data().data() + SKIPPED, n); }
