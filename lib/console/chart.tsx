/** Charts of the console, drawn as SVG on the server. */
import type { VNode } from "preact";
import { parseUsd, roundUsd } from "../billing/money.ts";
import type { UsageLine } from "../billing/reports/usage.ts";
import { DAY_MS, dayName } from "../store/days.ts";

const WIDTH = 900;
const HEIGHT = 160;
const MOST_BAR_WIDTH = 40;
/** Height of the labels below the bars. */
const LABELS = 18;

/**
 * Cost per UTC day as bars; days without requests are gaps.
 * @param since first moment of the chart, `until` the one after its last; Unix milliseconds
 */
export function DayChart(
  { days, since, until }: { days: readonly UsageLine[]; since: number; until: number },
): VNode {
  const first = Math.floor(since / DAY_MS);
  const count = Math.max(1, Math.ceil(until / DAY_MS) - first);
  const costs = new Map(days.map(({ name, cost_usd }) => [name, cost_usd]));
  const most = days.reduce((most, { cost_usd }) => parseUsd(cost_usd) > most ? parseUsd(cost_usd) : most, 1n);
  const step = WIDTH / count;
  const width = Math.min(step * 0.8, MOST_BAR_WIDTH);
  const bars = Array.from({ length: count }, (_, index) => {
    const name = dayName(first + index);
    const usd = costs.get(name) ?? "0";
    // Thousandths of the highest bar: amounts are exact, pixels need not be.
    const height = Number(parseUsd(usd) * 1000n / most) / 1000 * (HEIGHT - LABELS);
    return (
      <rect
        x={(index * step + (step - width) / 2).toFixed(1)}
        y={(HEIGHT - LABELS - height).toFixed(1)}
        width={width.toFixed(1)}
        height={height.toFixed(1)}
      >
        <title>{`${name}: ${usd} USD`}</title>
      </rect>
    );
  });
  const total = days.reduce((sum, { cost_usd }) => sum + parseUsd(cost_usd), 0n);
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`Cost per day, at most ${roundUsd(maxUsd(days))} USD${total === 0n ? "; nothing was spent" : ""}`}
    >
      {bars}
      <text x="0" y={HEIGHT - 4}>{dayName(first)}</text>
      <text x={WIDTH} y={HEIGHT - 4} text-anchor="end">{dayName(first + count - 1)}</text>
    </svg>
  );
}

function maxUsd(days: readonly UsageLine[]): string {
  return days.map(({ cost_usd }) => cost_usd).reduce((a, b) => parseUsd(a) > parseUsd(b) ? a : b, "0");
}
