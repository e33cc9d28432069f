/** A list that counts how often its items are read. */
export function countedList<T>(items: T[]): { list: T[]; reads: () => number } {
  let reads = 0;
  const list = new Proxy(items, {
    get(all, name) {
      if (typeof name === "string" && /^\d+$/.test(name)) reads++;
      return Reflect.get(all, name);
    },
  });
  return { list, reads: () => reads };
}
