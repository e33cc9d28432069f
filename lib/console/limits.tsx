/** Limits and how much of each is used now. */
import type { VNode } from "preact";
import { nameOf } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { LimitRequest, LimitStatus } from "../limits/limiter.ts";
import { limitOwnerOf } from "../limits/limit_requests.ts";
import { Count, Share, Table } from "./format.tsx";

const UNITS = {
  requests: "Requests in 60 s",
  tokens: "Tokens in 60 s",
  concurrency: "Concurrent requests",
} as const;

/** The statuses of limits, or why they cannot be read. */
export type ReadLimits = readonly LimitStatus[] | string;

/** Reads how much of limits is used. A page must show everything else while the limiter is out of reach. */
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

/** A table of limits. */
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
          UNITS[unit],
          <Count value={limit} />,
          <Count value={used} />,
          <Share percent={Math.floor(100 * used / limit)} of={`Used part of ${UNITS[unit]}`} />,
          resetMs === 0 || unit === "concurrency" ? "–" : `${Math.ceil(resetMs / 1000)} s`,
        ];
      })}
      empty="No limits apply."
    />
  );
}
