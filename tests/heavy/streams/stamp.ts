/** The time as all processes of a machine see it. */

/** Milliseconds since 1970 with decimals, the same in all processes of this machine. */
export function stamp(): number {
  return performance.timeOrigin + performance.now();
}
