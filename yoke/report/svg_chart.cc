#include "yoke/report/svg_chart.h"

namespace yoke::report {
namespace {

// Okabe and Ito, "Color Universal Design" (2008), without yellow, which vanishes on white, and with the text colour in
// the place of black. Series s0 … s6; plain values and no variables, as librsvg and Inkscape know none.
constexpr std::string_view kLightStyle =
    R"(.yoke-chart{font:12px system-ui,"Segoe UI","DejaVu Sans",sans-serif;color:#222}
.yoke-chart text{fill:currentColor}
.yoke-chart .title{font-size:15px;font-weight:600}
.yoke-chart .faint{fill:#595959}
.yoke-chart .grid{stroke:#e2e2e2}
.yoke-chart .axis{stroke:#767676}
.yoke-chart .reference{stroke:#595959;stroke-dasharray:7 4;stroke-width:1.5}
.yoke-chart .halo{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.yoke-chart .paper{fill:#fff}
.yoke-chart .s0{color:#0072b2}
.yoke-chart .s1{color:#d55e00}
.yoke-chart .s2{color:#009e73}
.yoke-chart .s3{color:#cc79a7}
.yoke-chart .s4{color:#e69f00}
.yoke-chart .s5{color:#56b4e9}
.yoke-chart .s6{color:#222}
)";

// On dark ground the two blues change places, for the darker one would hardly be seen as the first series.
constexpr std::string_view kDarkStyle = R"(.yoke-chart{max-width:100%;height:auto}
@media (prefers-color-scheme:dark){
.yoke-chart{color:#ddd}
.yoke-chart .faint{fill:#a8a8a8}
.yoke-chart .grid{stroke:#333}
.yoke-chart .axis{stroke:#8a8a8a}
.yoke-chart .reference{stroke:#a8a8a8}
.yoke-chart .halo{stroke:#161616}
.yoke-chart .s0{color:#56b4e9}
.yoke-chart .s5{color:#2f8fcb}
.yoke-chart .s6{color:#ddd}
}
)";

}  // namespace

std::string chart_style(SvgUse use) {
  std::string style(kLightStyle);
  if (use == SvgUse::kEmbedded) style += kDarkStyle;
  return style;
}

}  // namespace yoke::report
