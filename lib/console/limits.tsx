/** The table of limits and how much of each is used now. */
import type { VNode } from "preact";
import { nameOf } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { LimitRequest, LimitStatus } from "../limits/limiter.ts";
import { limitOwnerOf } from "../limits/limit_requests.ts";
import { Count, Share, Table } from "./format.tsx";

const UNIT_TEXTS = {
  requests: "Requests in 60 s",
  tokens: "Tokens in 60 s",
  concurrency: "Concurrent requests",
} as const;

/** The statuses of limits, or the reason why they cannot be read. */
export type ReadLimits = readonly LimitStatus[] | string;

/**
 * Reads how much of each limit is used. Never rejects: a page must show everything else if the limiter is unreachable.
 */
export async function readLimits(
  { limiter }: Pick<Gateway, "limiter">,
  limits: readonly LimitRequest[],
): Promise<ReadLimits> {
  if (limits.length === 0) return [];
  try {
    return await limiter.statuses(limits);
  } catch (error) {
    return `The limits cannot be read now (${nameOf(error)}).`;
  }
}

/** Shows the table of limits, or the reason why they cannot be read. */
export function LimitTable({ limits }: { limits: ReadLimits }): VNode {
  if (typeof limits === "string") return <p class="notice bad">{limits}</p>;
  return (
    <Table
      columns={["Limit of", "Unit", "#Limit", "#Used now", "Share", "#Free again in"]}
      rows={limits.map(({ limitRequest, remaining, resetMs }) => {
        const { unit, limit, reportOnly } = limitRequest;
        const { type, id } = limitOwnerOf(limitRequest);
        const used = limit - remaining;
        return [
          `${type === "key" ? "this key" : `${type} ${id}`}${reportOnly ? " (reported only)" : ""}`,
          UNIT_TEXTS[unit],
          <Count value={limit} />,
          <Count value={used} />,
          <Share percent={Math.floor(100 * used / limit)} of={`Used part of ${UNIT_TEXTS[unit]}`} />,
          resetMs === 0 || unit === "concurrency" ? "–" : `${Math.ceil(resetMs / 1000)} s`,
        ];
      })}
      empty="No limits apply."
    />
  );
}
