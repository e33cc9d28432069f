/** The memory of a whole process: how much it has had, and a limit above which the system ends it. */

/** The most memory that a process has had, in MiB. */
export async function peakMib(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/^VmHWM:\s*(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/** A control group with a limit of memory; processes in it that need more are killed. */
export interface MemoryGroup extends AsyncDisposable {
  /** Runs a command within it. */
  readonly under: readonly [string, ...string[]];
}

/** Folders for groups with limits of memory, by version of control groups, and the file that has the limit. */
const HIERARCHIES = [
  { folder: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes" },
  { folder: "/sys/fs/cgroup", limit: "memory.max", swap: "memory.swap.max" },
] as const;

/**
 * Makes a control group. Returns the reason if that is impossible on this machine: no permission, or no control groups.
 */
export async function createMemoryGroup(bytes: number): Promise<MemoryGroup | string> {
  let reason = "only Linux has control groups";
  if (Deno.build.os !== "linux") return reason;
  for (const { folder, limit, swap } of HIERARCHIES) {
    const group = `${folder}/sluice-test-${crypto.randomUUID()}`;
    try {
      await Deno.mkdir(group);
      await Deno.writeTextFile(`${group}/${limit}`, String(bytes));
    } catch (error) {
      reason = `cannot limit memory in ${folder}: ${error instanceof Error ? error.message : error}`;
      await Deno.remove(group).catch(() => {});
      continue;
    }
    await Deno.writeTextFile(`${group}/${swap}`, swap === "memory.swap.max" ? "0" : String(bytes)).catch(() => {});
    return {
      under: ["/bin/sh", "-c", `echo $$ >${group}/cgroup.procs && exec "$@"`, "sh"],
      [Symbol.asyncDispose]: () => Deno.remove(group),
    };
  }
  return reason;
}
