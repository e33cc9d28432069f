/** Linux's figures about a process with many streams. */
import { memoryBytes } from "../../../bench/suite/proc.ts";

/** Resources of a process at one moment. */
export interface Weight {
  /** Proportional share of memory (PSS), and resident memory, in bytes. */
  pssBytes: number;
  rssBytes: number;
  descriptors: number;
}

/** Measures a process. */
export async function weigh(pid: number): Promise<Weight> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return {
    pssBytes: await memoryBytes(pid),
    rssBytes: Number(/^VmRSS:\s*(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024,
    descriptors: (await Array.fromAsync(Deno.readDir(`/proc/${pid}/fd`))).length,
  };
}

/** Processor time that a process has used, in seconds. */
export async function cpuSeconds(pid: number): Promise<number> {
  const text = await Deno.readTextFile(`/proc/${pid}/stat`);
  // The text before is the process name in parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Maximum number of descriptors per process; 0 if unknown. */
export function descriptorLimit(): number {
  try {
    const [, , hard] = /^Max open files +(\S+) +(\S+)/m.exec(Deno.readTextFileSync("/proc/self/limits")) ?? [];
    return hard === "unlimited" ? Infinity : Number(hard ?? 0);
  } catch {
    return 0;
  }
}
