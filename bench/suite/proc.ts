/** Reads CPU time and memory of a process with its threads and children from Linux. */

/** CPU time in nanoseconds of a process and its descendants. Descendants that have ended are not included. */
export async function cpuNs(pid: number): Promise<number> {
  let sum = 0;
  for (const one of await family(pid)) {
    for (const task of await tasksOf(one)) {
      const text = await read(`/proc/${one}/task/${task}/schedstat`);
      sum += Number(text.slice(0, text.indexOf(" ")));
    }
  }
  return sum;
}

/** Memory in bytes: the process's own, and its share of shared pages. */
export async function memoryBytes(pid: number): Promise<number> {
  let sum = 0;
  for (const one of await family(pid)) {
    const text = await read(`/proc/${one}/smaps_rollup`);
    sum += Number(/^Pss:\s*(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
  }
  return sum;
}

/** A process and its descendants. */
export async function family(pid: number): Promise<number[]> {
  const all = [pid];
  for (const one of all) {
    for (const task of await tasksOf(one)) {
      const children = await read(`/proc/${one}/task/${task}/children`);
      all.push(...children.split(" ").filter((word) => word.trim() !== "").map(Number));
    }
  }
  return all;
}

/** Load average of the machine over the last minute, in cores. */
export async function loadAverage(): Promise<number> {
  return Number((await read("/proc/loadavg")).split(" ")[0]);
}

async function tasksOf(pid: number): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(`/proc/${pid}/task`))).map(({ name }) => name);
  } catch {
    return [];
  }
}

/** Empty if the process has ended. */
async function read(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch {
    return "";
  }
}
