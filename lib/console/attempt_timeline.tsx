/** Draws the attempts of a request over time, as SVG. */
import { scaleLinear } from "d3-scale";
import type { VNode } from "preact";
import type { EndedRequest } from "../billing/reports/request_schemas.ts";
import { millisecondsTick } from "./chart.tsx";

/** Sizes in units of the view box. */
const WIDTH = 900;
const ROW_HEIGHT = 28;
const BAR_HEIGHT = 14;
const AXIS_HEIGHT = 20;
/** Approximate number of vertical lines. */
const TICKS = 6;
/** Half the width of a label. */
const HALF_LABEL_WIDTH = 24;
/** Smallest width of a bar. */
const MIN_BAR_WIDTH = 2;

interface Bar {
  name: string;
  kind: "answer" | "failure" | "wait";
  /** Start, in milliseconds after the request's arrival. */
  from: number;
  /** End, in milliseconds after the request's arrival. */
  to: number;
}

/** Returns the part of a label that is at its tick, so that no label is cut off. */
function anchorAt(x: number): "start" | "middle" | "end" {
  if (x === 0) return "start";
  return x > WIDTH - HALF_LABEL_WIDTH ? "end" : "middle";
}

/**
 * Shows a bar for each attempt, and one for the answer. Only the durations of attempts are known, not their starts, so
 * all pauses between attempts are drawn before the last one.
 */
export function AttemptTimeline({ request }: { request: EndedRequest }): VNode {
  const rows = barsOf(request);
  const end = Math.max(1, request.total_ms, ...rows.map(({ to }) => to));
  const x = scaleLinear().domain([0, end]).range([0, WIDTH]);
  const height = rows.length * ROW_HEIGHT + AXIS_HEIGHT;
  return (
    <div class="timeline-frame" role="region" tabIndex={0} aria-label="Attempts over time">
      <svg class="chart timeline" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label="Attempts over time">
        {x.ticks(TICKS).map((value) => (
          <>
            <line x1={x(value).toFixed(1)} x2={x(value).toFixed(1)} y1={0} y2={height - AXIS_HEIGHT} />
            <text
              x={x(value).toFixed(1)}
              y={height - 4}
              text-anchor={anchorAt(x(value))}
            >
              {millisecondsTick(value)}
            </text>
          </>
        ))}
        {rows.map(({ name, kind, from, to }, row) => (
          <>
            <rect
              class={kind}
              x={x(from).toFixed(1)}
              y={row * ROW_HEIGHT + 12}
              width={Math.max(MIN_BAR_WIDTH, x(to) - x(from)).toFixed(1)}
              height={BAR_HEIGHT}
            />
            <text
              x={(x(from) > WIDTH / 2 ? x(to) : x(from)).toFixed(1)}
              y={row * ROW_HEIGHT + 9}
              text-anchor={x(from) > WIDTH / 2 ? "end" : "start"}
            >
              {`${name}: ${millisecondsTick(to - from)}`}
            </text>
          </>
        ))}
      </svg>
    </div>
  );
}

function barsOf({ attempt_list: attempts, upstream, model, first_ms, total_ms }: EndedRequest): Bar[] {
  const rows: Bar[] = [];
  const listed = attempts.length > 0 ? attempts : [{
    upstream: upstream ?? "",
    model: model ?? "",
    outcome: first_ms === null ? "failure" : "success",
    ms: first_ms ?? total_ms,
  }];
  const attemptsMs = listed.reduce((sum, { ms }) => sum + ms, 0);
  // The last attempt ends with the first event of the answer, or with the request.
  const pause = Math.max(0, (first_ms ?? total_ms) - attemptsMs);
  let from = 0;
  listed.forEach(({ upstream, model, outcome, ms }, index) => {
    if (index === listed.length - 1 && pause > 0) {
      if (listed.length > 1) rows.push({ name: "pauses", kind: "wait", from, to: from + pause });
      from += pause;
    }
    rows.push({
      name: `${index + 1}. ${upstream}, ${model}`,
      kind: outcome === "success" ? "wait" : "failure",
      from,
      to: from + ms,
    });
    from += ms;
  });
  if (first_ms !== null && total_ms > first_ms) {
    rows.push({ name: "answer", kind: "answer", from: first_ms, to: total_ms });
  }
  return rows;
}
