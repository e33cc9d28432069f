/** The attempts of a request over its time, as SVG. */
import { scaleLinear } from "d3-scale";
import type { VNode } from "preact";
import type { EndedRequest } from "../billing/reports/request_schemas.ts";
import { millisecondsTick } from "./chart.tsx";

/** Sizes in units of the view box. */
const WIDTH = 900;
const ROW = 28;
const BAR = 14;
const AXIS = 20;
/** Lines across the timeline, about. */
const TICKS = 6;
/** Half the width of a label. */
const LABEL = 24;
/** Least width of a bar. */
const MIN_WIDTH = 2;

/** A stretch of time, in milliseconds from the request's arrival. */
interface Stretch {
  name: string;
  kind: "answer" | "failure" | "wait";
  from: number;
  to: number;
}

/**
 * One bar for each attempt, then one for the answer. An attempt is known by its duration, not its beginning, so the pauses
 * between attempts are all before the last one.
 */
export function AttemptTimeline({ request }: { request: EndedRequest }): VNode {
  const rows = stretchesOf(request);
  const end = Math.max(1, request.total_ms, ...rows.map(({ to }) => to));
  const x = scaleLinear().domain([0, end]).range([0, WIDTH]);
  const height = rows.length * ROW + AXIS;
  return (
    <div class="timeline-frame" role="region" tabIndex={0} aria-label="Attempts over time">
      <svg class="chart timeline" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label="Attempts over time">
        {x.ticks(TICKS).map((value) => (
          <>
            <line x1={x(value).toFixed(1)} x2={x(value).toFixed(1)} y1={0} y2={height - AXIS} />
            <text
              x={x(value).toFixed(1)}
              y={height - 4}
              text-anchor={value === 0 ? "start" : x(value) > WIDTH - LABEL ? "end" : "middle"}
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
              y={row * ROW + 12}
              width={Math.max(MIN_WIDTH, x(to) - x(from)).toFixed(1)}
              height={BAR}
            />
            <text
              x={(x(from) > WIDTH / 2 ? x(to) : x(from)).toFixed(1)}
              y={row * ROW + 9}
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

function stretchesOf({ attempt_list: attempts, upstream, model, first_ms, total_ms }: EndedRequest): Stretch[] {
  const rows: Stretch[] = [];
  const listed = attempts.length > 0 ? attempts : [{
    upstream: upstream ?? "",
    model: model ?? "",
    outcome: first_ms === null ? "failure" : "success",
    ms: first_ms ?? total_ms,
  }];
  const worked = listed.reduce((sum, { ms }) => sum + ms, 0);
  // The last attempt ends with the first event of the answer, or with the request.
  const pause = Math.max(0, (first_ms ?? total_ms) - worked);
  let from = 0;
  listed.forEach(({ upstream, model, outcome, ms }, at) => {
    if (at === listed.length - 1 && pause > 0) {
      if (listed.length > 1) rows.push({ name: "pauses", kind: "wait", from, to: from + pause });
      from += pause;
    }
    rows.push({
      name: `${at + 1}. ${upstream}, ${model}`,
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
