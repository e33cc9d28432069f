/** Reads the resources of a running Sluice: memory, descriptors, and open work. */
import { DatabaseSync } from "node:sqlite";
import { memoryBytes } from "./proc.ts";

/** A sample of the process's resources. Memory is in bytes. */
export interface ProcessSample {
  /** Since the beginning, in seconds. */
  seconds: number;
  rss: number;
  /** Its own memory and its share of shared pages. */
  pss: number;
  /** Used heap of the engine. */
  heap: number;
  /** Open files and sockets. */
  descriptors: number;
  /** Entries that are not yet durable in the ledger. */
  queue: number;
  /** Holds that are recorded in the file. */
  holds: number;
  /** Running requests. */
  running: number;
  /** Bytes of request bodies in memory. */
  bodies: number;
}

/** Process and files to read. */
export interface GatewayProcess {
  pid: number;
  port: number;
  adminKey: string;
  /** The file of its store. */
  database: string;
}

/** Samples the process. @throws {Error} if the gateway does not answer */
export async function sampleProcess(
  { pid, port, adminKey, database }: GatewayProcess,
  seconds: number,
): Promise<ProcessSample> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
    headers: { authorization: `Bearer ${adminKey}` },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`Cannot read the metrics: status ${response.status}`);
  const gauge = (name: string) => Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1] ?? NaN);
  return {
    seconds: Math.round(seconds),
    rss: await residentBytes(pid),
    pss: await memoryBytes(pid),
    heap: gauge("sluice_heap_used_bytes"),
    descriptors: (await Array.fromAsync(Deno.readDir(`/proc/${pid}/fd`))).length,
    queue: gauge("sluice_ledger_queue"),
    holds: countOf(database, "holds"),
    running: gauge("sluice_open_requests"),
    bodies: gauge("sluice_request_body_bytes"),
  };
}

/** Rows of a table of the store. */
export function countOf(database: string, name: "holds" | "entries"): number {
  using db = new DatabaseSync(database, { readOnly: true });
  return Number(db.prepare(`SELECT count(*) AS count FROM ${name}`).get()?.["count"]);
}

async function residentBytes(pid: number): Promise<number> {
  const text = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s*(\d+) kB/m.exec(text)?.[1] ?? NaN) * 1024;
}
