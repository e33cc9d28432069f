/** Machines one after the other. */
import type { Event, Machine } from "../canonical/types.ts";

/**
 * One machine of several: what one gives, the next one gets. After a finish or an error it gives nothing more, and takes
 * nothing more in.
 */
export function chain(machines: readonly Machine<Event, Event>[]): Machine<Event, Event> {
  let over = false;

  function run(events: Event[], from: number): Event[] {
    return machines.slice(from).reduce((events, machine) => events.flatMap((event) => machine.push(event)), events);
  }

  function cut(events: Event[]): Event[] {
    const last = events.findIndex(({ type }) => type === "finish" || type === "error");
    if (last < 0) return events;
    over = true;
    return events.slice(0, last + 1);
  }

  return {
    push: (event) => over ? [] : cut(run([event], 0)),
    end: () => over ? [] : cut(machines.flatMap((machine, index) => run(machine.end(), index + 1))),
  };
}
