// The rules of ops that slide a window over an image, or divide it into windows: convolutions and pools.

#include <algorithm>

#include "base/error.h"
#include "graph/ops.h"

namespace paceline::graph {
namespace {

/// From the first tap to the last. No image is larger than the most that it gives.
int extent(int kernel, int dilation) {
  return static_cast<int>(std::min(std::int64_t{dilation} * (kernel - 1) + 1, std::int64_t{1} << 28));
}

/// Number of positions of a window along `length`, as in PyTorch: rounded up, the last one must begin inside
/// the input or the padding before it. 0 or less if it does not fit.
int positions(int length, int extent, int stride, int padding, bool ceil) {
  const int room = length + 2 * padding - extent + (ceil ? stride - 1 : 0);
  if (room < 0) return 0;
  const int count = room / stride + 1;
  return ceil && (count - 1) * stride >= length + padding ? count - 1 : count;
}

/// The output shape of a sliding window with `channels` output channels.
///
/// Errors   Error(usage) naming the op when the window is invalid or larger than the padded input
Shape slide(const OpSite& site, const SlidingWindow& window, int channels) {
  const auto kind = rule_of(site.op).kind;
  const Shape& src = site.src[0];
  const auto least = [](const Pair& pair) { return std::min(pair.height, pair.width); };
  if (least(window.kernel) < 1 || least(window.stride) < 1)
    base::fail(base::ErrorKind::usage,
               "{} '{}': kernel and stride must be at least 1, but are {} and {}; correct them", kind,
               site.name, text(window.kernel), text(window.stride));
  if (least(window.dilation) < 1)
    base::fail(base::ErrorKind::usage,
               "{} '{}': dilation must be at least 1, but is {}; 1 leaves no gaps between taps", kind,
               site.name, text(window.dilation));
  const Pair padding = window.padding, stride = window.stride;
  const bool is_dilated = window.dilation != 1;
  const Pair taps = {extent(window.kernel.height, window.dilation.height),
                     extent(window.kernel.width, window.dilation.width)};
  if (least(padding) < 0 || padding.height >= taps.height || padding.width >= taps.width)
    base::fail(base::ErrorKind::usage,
               "{} '{}': padding must be from 0 to {} = {}, but is {}; use half of that to keep the size",
               kind, site.name, is_dilated ? "dilation * (kernel - 1)" : "kernel - 1",
               text(Pair(taps.height - 1, taps.width - 1)), text(padding));
  const Shape dst = {channels, positions(src.height, taps.height, stride.height, padding.height, window.ceil),
                     positions(src.width, taps.width, stride.width, padding.width, window.ceil)};
  if (dst.height < 1 || dst.width < 1)
    base::fail(
        base::ErrorKind::usage,
        "{} '{}': the kernel {}{} must fit into its input, but that is {} with padding {}; use a larger image "
        "or less downsampling before it",
        kind, site.name, text(window.kernel), is_dilated ? " with dilation " + text(window.dilation) : "",
        text(src), text(padding));
  return dst;
}

Shape conv2d_shape(const OpSite& site) {
  const auto& conv = site.as<Conv2d>();
  if (conv.channels < 1)
    base::fail(base::ErrorKind::usage,
               "conv2d '{}': channels must be at least 1, but is {}; say how many it makes", site.name,
               conv.channels);
  check_rates(site, conv.rates);
  const int channels_in = site.src[0].channels;
  if (conv.groups < 1 || channels_in % conv.groups != 0 || conv.channels % conv.groups != 0)
    base::fail(base::ErrorKind::usage,
               "conv2d '{}': groups must divide its input's {} channels and its own {}, but is {}; take a "
               "divisor of both",
               site.name, channels_in, conv.channels, conv.groups);
  if (conv.groups > 1 && (conv.init == Init::whiten || conv.init == Init::dirac))
    base::fail(
        base::ErrorKind::usage,
        "conv2d '{}': init \"dirac\" and \"whiten\" are for one group, but groups is {}; leave init out or "
        "take \"zero\"",
        site.name, conv.groups);
  const Shape dst = slide(site, {conv.kernel, conv.stride, conv.padding, conv.dilation}, conv.channels);
  if (conv.init == Init::whiten && (!conv.kernel.is_square() || conv.dilation != 1))
    base::fail(
        base::ErrorKind::usage,
        "conv2d '{}': init \"whiten\" is for a square kernel without dilation, but they are {} and {}; "
        "leave init out",
        site.name, text(conv.kernel), text(conv.dilation));
  const std::int64_t most = 2 * site.src[0].channels * conv.kernel.product();
  if (conv.init == Init::whiten && (conv.channels % 2 != 0 || conv.channels > most))
    base::fail(
        base::ErrorKind::usage,
        "conv2d '{}': init \"whiten\" makes an even number of channels, at most {} (2 x {} x {} x {}), but "
        "channels is {}; change it",
        site.name, most, site.src[0].channels, conv.kernel.height, conv.kernel.width, conv.channels);
  return dst;
}

std::vector<ParameterRule> conv2d_parameters(const OpSite& site) {
  const auto& conv = site.as<Conv2d>();
  std::vector<ParameterRule> rules = {
      {"weight",
       {conv.channels, site.src[0].channels / conv.groups, conv.kernel.height, conv.kernel.width},
       Role::weight,
       conv.rates.weight}};
  if (conv.bias) rules.push_back({"bias", {conv.channels}, Role::bias, conv.rates.bias});
  return rules;
}

std::int64_t conv2d_multiply_adds(const OpSite& site, const Shape& dst) {
  const auto& conv = site.as<Conv2d>();
  return dst.elements() * (site.src[0].channels / conv.groups) * conv.kernel.product();
}

/// Of max_pool and average_pool.
template <typename Pool>
Shape pool_shape(const OpSite& site) {
  const auto& pool = site.as<Pool>();
  // PyTorch's rule; it also ensures that every window overlaps the image.
  if (2 * pool.padding.height > pool.kernel.height || 2 * pool.padding.width > pool.kernel.width)
    base::fail(base::ErrorKind::usage,
               "{} '{}': padding must be at most half the kernel {}, but is {}; lower it",
               rule_of(site.op).kind, site.name, text(pool.kernel), text(pool.padding));
  return slide(site,
               {.kernel = pool.kernel, .stride = pool.stride, .padding = pool.padding, .ceil = pool.ceil},
               site.src[0].channels);
}

Shape adaptive_average_pool_shape(const OpSite& site) {
  const Pair size = site.as<AdaptiveAveragePool>().size;
  if (size.height < 1 || size.width < 1)
    base::fail(
        base::ErrorKind::usage,
        "adaptive_average_pool '{}': size must be at least 1, but is {}; say how many rows and columns "
        "it makes",
        site.name, text(size));
  return {site.src[0].channels, size.height, size.width};
}

}  // namespace

OpRule make_rule(const Conv2d&) {
  return {.saved = {.src = true},
          .shape = conv2d_shape,
          .parameters = conv2d_parameters,
          .multiply_adds = conv2d_multiply_adds};
}

OpRule make_rule(const MaxPool&) { return {.saved = {.mask = true}, .shape = pool_shape<MaxPool>}; }

OpRule make_rule(const AveragePool&) { return {.shape = pool_shape<AveragePool>}; }

OpRule make_rule(const AdaptiveAveragePool&) { return {.shape = adaptive_average_pool_shape}; }

}  // namespace paceline::graph
