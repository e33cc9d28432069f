import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { startServer } from "../../fault/start_server.ts";
import { embeddingRow, entriesOf, post, rerankRow, statusOf } from "./retrieval.ts";

const WAYS = ["embedded", "wire"] as const;

/** The endpoints, with a request that asks for a fault. */
const ENDPOINTS = [
  {
    path: "/v1/embeddings",
    row: embeddingRow,
    body: (ask: string) => ({ input: ["a text", ask] }),
    more: { embedding: { dimensions: 8 } },
  },
  {
    path: "/v1/rerank",
    row: rerankRow,
    body: (ask: string) => ({ query: ask, documents: ["one", "two"] }),
    more: {},
  },
];

/** Faults that the client sees, with their statuses. */
const FATAL: [ask: string, status: number][] = [
  ["status:400", 400],
  ["status:429", 429],
  ["status:500", 502],
  ["status:503", 503],
  ["error", 502],
  ["garbage", 502],
  ["half-event", 502],
  ["cut", 502],
  ["refuse", 502],
  ["stall", 504],
];

/** Faults that need a real connection. */
const WIRE: [ask: string, status: number][] = [
  ["cut-after:1", 502],
  ["reset-after:1", 502],
  ["wrong-type", 502],
  ["redirect", 502],
  ["huge-headers:2mb", 502],
  ["bad-chunk", 502],
  ["junk", 502],
];

/** Time limit for silent hosts, in milliseconds; the others get enough time for a busy machine. */
const STALL_MS = 400;

function gatewayFor(url: string, way: typeof WAYS[number], totalMs = 60_000): TestGateway {
  const timeouts = { total_ms: totalMs };
  const target = way === "embedded"
    ? { upstream: "embedded", model: "fault" }
    : { upstream: "faulty", model: "real-one" };
  const sound = (model: string) => ({ upstream: "embedded", model, priority: 1 });
  const rows = ENDPOINTS.flatMap(({ path, row, more }): JsonObject[] => [
    row(`acme/alone-${path.slice(4)}`, [], { ...more, targets: [{ ...target, timeouts }] }),
    row(`acme/two-${path.slice(4)}`, [], {
      ...more,
      targets: [{ ...target, timeouts }, sound(path === "/v1/rerank" ? "rerank" : "embed")],
    }),
  ]);
  return startGateway({ upstreams: { faulty: upstream("openai-compatible", url) }, models: rows });
}

for (const way of WAYS) {
  for (const { path, body } of ENDPOINTS) {
    Deno.test(`${path}, ${way}: faults are reported to the client, free of charge, and another target answers`, async () => {
      await using server = startServer();
      await using patient = gatewayFor(server.url, way);
      await using hasty = gatewayFor(server.url, way, STALL_MS);
      for (const [ask, status] of [...FATAL, ...(way === "wire" ? WIRE : [])]) {
        const gateway = ask === "stall" ? hasty : patient;
        const alone = post(gateway, path, { model: `acme/alone-${path.slice(4)}`, ...body(ask) });
        assertEquals(await statusOf(alone), status, ask);
        const two = post(gateway, path, { model: `acme/two-${path.slice(4)}`, ...body(ask) });
        // An invalid request is invalid at every target, and a host that used up the time limit leaves no time for
        // another.
        const isFinal = ask === "status:400" || (ask === "stall" && way === "wire");
        assertEquals(await statusOf(two), isFinal ? status : 200, `${ask}, with another target`);
      }
      for (const { ending, cost, model } of [...await entriesOf(patient), ...await entriesOf(hasty)]) {
        if (model.startsWith("acme/alone")) assertEquals([ending, cost], ["failed", 0n]);
      }
    });

    Deno.test(`${path}, ${way}: missing or impossible usage is counted`, async () => {
      await using server = startServer();
      await using gateway = gatewayFor(server.url, way);
      for (const ask of ["no-usage", "wrong-usage"]) {
        const response = post(gateway, path, { model: `acme/alone-${path.slice(4)}`, ...body(ask) });
        assertEquals(await statusOf(response), 200);
      }
      for (const { source, ending } of await entriesOf(gateway)) assertEquals([source, ending], ["counted", "end"]);
    });
  }
}
