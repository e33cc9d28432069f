/** The page of the nodes of the store: their versions, load, and the state of their stores. */
import type { VNode } from "preact";
import { type NodeFacts, type NodeState, readNodes } from "../admin/nodes.ts";
import { readHealth } from "../admin/health.ts";
import type { RouteContext } from "../server/router.ts";
import { Cards, Count, Moment, State, Table } from "./format.tsx";
import { showPage } from "./html.tsx";

/** `GET /admin/console/node`. */
export function nodesPage(_request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async () => {
    const { gateway } = context;
    const [health, nodes] = await Promise.all([readHealth(gateway), readNodes(gateway)]);
    return {
      title: "Nodes",
      body: (
        <>
          <NodeTable nodes={nodes} />
          {gateway.store.shared === undefined
            ? <p class="dim">No other node uses this store.</p>
            : <p class="dim">Each node reports itself every ten seconds, over the store.</p>}
          <h2>The node that answers</h2>
          <p>
            <State state={health.status} text={health.message} />
          </p>
          <Cards
            cards={[
              ["Running for", duration(health.uptime_seconds)],
              ["Open requests", health.open_requests],
              ["Open streams", health.open_streams],
              ["Event loop delay", `${health.loop_lag_ms} ms`],
              ["Memory", megabytes(health.memory.rss_bytes)],
              ["Store", health.store ? "answers" : "does not answer"],
              ["Ledger", health.ledger ? "can be written" : "cannot be written"],
              ["Entries not yet durable", health.ledger_queue],
              ["Entries in the journal", health.journal_entries],
              ["Limits counted", limitsText(health)],
            ]}
          />
          <p class="dim">
            The admin API of each node has the same under <code>/admin/v1/health</code>.
          </p>
        </>
      ),
    };
  });
}

function NodeTable({ nodes }: { nodes: readonly NodeState[] }): VNode {
  return (
    <Table
      columns={[
        ...["Node", "Version", "Listens on", "Running for", "State", "#Open requests", "#Loop delay", "#Memory"],
        ...["Store", "Limits", "#Journal", "#Configuration", "Reported"],
      ]}
      rows={nodes.map(({ id, isThis, isSilent, reported_at, facts }) => [
        `${id}${isThis ? " (this one)" : ""}`,
        facts.version,
        `${facts.listens_on}, process ${facts.pid}`,
        duration(facts.uptime_seconds),
        isSilent ? <State state="unavailable" text="silent" /> : <State state={facts.status} />,
        <Count value={facts.open_requests} />,
        `${facts.loop_lag_ms} ms`,
        megabytes(facts.rss_bytes),
        facts.store && facts.ledger ? "answers" : <State state="unavailable" text="unreachable" />,
        limitsText(facts),
        <Count value={facts.journal_entries} />,
        facts.config_version,
        <Moment iso={reported_at} seconds />,
      ])}
      empty="No node is known."
    />
  );
}

function limitsText({ limits, limits_healthy }: Pick<NodeFacts, "limits" | "limits_healthy">): string {
  if (limits === "memory") return "in this process";
  return limits_healthy ? "in Redis" : "Redis is unreachable";
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

/** Formats a duration, such as `3 d 4 h` or `12 min`. */
function duration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
