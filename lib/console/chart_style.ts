/** Styles of charts and of the pages that came with them; a part of `console.css`. */

/** The styles. Each part of a chart has a contrast of at least 3:1 to the background (WCAG 2.2, 1.4.11). */
export const CHART_STYLE = `
.charts > figure { margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; margin: 0 0 1rem; }
figure { margin: 0 0 1rem; min-width: 0; background: var(--surface); border: 1px solid var(--line); padding: .6rem .9rem;
  border-radius: var(--radius); }
figcaption { font-weight: 600; font-size: .9rem; }
main > figure { max-width: 48rem; }
svg.chart { width: 100%; height: auto; display: block; max-width: 45rem; overflow: visible; }
svg.chart line { stroke: var(--line); }
svg.chart text { fill: var(--dim); font-size: 11px; }
@media (max-width: 30rem) { svg.chart text { font-size: 15px; } }
svg.chart path.part { fill: var(--part); }
svg.chart path.line { fill: none; stroke: var(--part); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
svg.chart rect.target { fill: transparent; }
svg.chart rect.target:hover { fill: var(--text); fill-opacity: .12; }
svg.timeline { max-width: none; min-width: 44rem; }
.timeline-frame { overflow-x: auto; padding-top: .5rem; margin: 0 0 .75rem; }
svg.timeline rect.wait { fill: light-dark(#6e7781, #8b949e); } svg.timeline rect.answer { fill: var(--good); }
svg.timeline rect.failure { fill: var(--bad); }
tr.new { animation: new 2s; }
@keyframes new { from { background: light-dark(#fff3c4, #4a3f12); } }
button[aria-pressed="true"]::before { content: "● "; color: var(--bad); }
.copyable button { height: auto; padding: .05rem .5rem; font-size: .8rem; }
div.copyable { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .5rem; align-items: start; margin: 0 0 1rem; }
div.copyable pre { margin: 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.sides section { min-width: 0; } .sides img { max-width: 100%; border-radius: var(--radius); }
.answer { white-space: pre-wrap; overflow-wrap: anywhere; min-height: 3rem; }
#playground label { margin-bottom: .6rem; } #playground textarea { width: 100%; resize: vertical; }
#playground .fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 0 .75rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0 0 .75rem; padding: 0; font-size: .9rem; }
.legend li { overflow-wrap: anywhere; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: .15em; background: var(--part); }
.p0, .p50 { --part: light-dark(#0b57d0, #8ab4f8); } .p1, .p95 { --part: light-dark(#b35900, #f0b35a); }
.p2 { --part: light-dark(#1a7f37, #6fcf87); } .p3 { --part: light-dark(#8250df, #c9a0ff); }
.p4 { --part: light-dark(#b3261e, #ff9a90); } .p5 { --part: light-dark(#00706b, #5fd3c4); }
.p6 { --part: light-dark(#7d5a3c, #d2b48c); } .others { --part: light-dark(#6e7781, #8b949e); }
`;
