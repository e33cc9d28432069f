import { assert, assertEquals } from "@std/assert";
import { TRANSPORT_KINDS } from "../../lib/upstreams/select_transport.ts";
import type { WireFault } from "../e2e/fault/matrix/fault.ts";
import { FAULTS, GROUPS } from "../e2e/fault/matrix/faults.ts";
import { SPOKEN } from "../e2e/fault/matrix/sound_answer.ts";
import { type Bench, type Cell, type Outcome, startBench } from "../e2e/fault/matrix/trial.ts";
import { PROTOCOLS } from "../upstream/replies.ts";
import type { FaultRow, Seens } from "./fault_table.ts";
import { publish } from "./figures.ts";

const MIB = 1024 ** 2;

/**
 * Maximum number of descriptors that may be open after a transport's part beyond those before: connections that are
 * kept idle.
 */
const KEPT = 64;

/** Result of one cell. */
interface Met extends Outcome {
  transport: string;
  cell: Cell;
}

Deno.test("every fault, protocol and transport: reported in the client's protocol, free of charge, and cleaned up", async () => {
  const met: Met[] = [];
  const failures: string[] = [];
  const descriptors: number[] = [];
  for (const transport of TRANSPORT_KINDS) {
    let bench = startBench(transport);
    for (const fault of FAULTS) {
      for (const cell of cellsOf(fault)) {
        try {
          met.push({ ...await bench.meet(cell), transport, cell });
        } catch (error) {
          failures.push(`${transport}: ${tell(error)}`);
          await bench[Symbol.asyncDispose]();
          bench = startBench(transport);
        }
      }
      descriptors.push(openDescriptors());
    }
    await end(bench);
  }
  const requests = PROTOCOLS.length * SPOKEN.length * 2 * TRANSPORT_KINDS.length * FAULTS.length;
  await publish("faults", {
    faults: FAULTS.length,
    cells: requests,
    failures: failures.length,
    most_memory_mib: mibOf(met),
    most_descriptors: Math.max(...descriptors),
    last_descriptors: descriptors.at(-1) ?? 0,
    rows: rowsOf(met).map((row) => ({ ...row })),
  });
  assertEquals(failures, []);
  assertEquals(met.length, requests);
  const [first = 0, last = 0] = [descriptors[0], descriptors.at(-1)];
  assert(last <= first + KEPT, `descriptors: ${first} after the first fault, ${last} after the last`);
});

function* cellsOf(fault: WireFault): Generator<Cell> {
  for (const client of PROTOCOLS) {
    for (const spoken of SPOKEN) {
      for (const stream of [true, false]) yield { fault, client, spoken, stream };
    }
  }
}

function rowsOf(met: readonly Met[]): FaultRow[] {
  return Object.entries(GROUPS).flatMap(([group, faults]) =>
    faults.map(({ name, about }): FaultRow => {
      const here = met.filter(({ cell }) => cell.fault.name === name);
      const times = here.map(({ ms }) => ms).sort((a, b) => a - b);
      return {
        group,
        name,
        about,
        streamed: seensOf(here.filter(({ cell }) => cell.stream)),
        whole: seensOf(here.filter(({ cell }) => !cell.stream)),
        median_ms: Math.round(times[times.length >> 1] ?? 0),
        longest_ms: Math.round(times.at(-1) ?? 0),
        memory_mib: {
          streamed: mibOf(here.filter(({ cell }) => cell.stream)),
          whole: mibOf(here.filter(({ cell }) => !cell.stream)),
        },
      };
    })
  );
}

/** The most that memory grew. */
function mibOf(met: readonly Met[]): number {
  return Math.round(Math.max(0, ...met.map(({ grown }) => grown)) / MIB);
}

/** Number of times that each was seen, over each transport. */
function seensOf(met: readonly Met[]): Record<string, Seens> {
  return Object.fromEntries(TRANSPORT_KINDS.map((transport) => {
    const seens: Record<string, number> = {};
    for (const { seen } of met.filter((one) => one.transport === transport)) {
      seens[seen] = (seens[seen] ?? 0) + 1;
    }
    return [transport, seens];
  }));
}

async function end(bench: Bench): Promise<void> {
  await bench[Symbol.asyncDispose]();
  assertEquals([bench.wire.busy, bench.wire.open], [0, 0]);
}

function openDescriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

function tell(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n${tell(error.cause)}`;
}
