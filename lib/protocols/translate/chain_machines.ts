import type { Machine, ReplyEvent } from "../canonical/types.ts";

/** Chains machines: the output of each is the input of the next. After a finish or an error the chain is over. */
export function chainMachines(machines: readonly Machine<ReplyEvent, ReplyEvent>[]): Machine<ReplyEvent, ReplyEvent> {
  let over = false;

  function run(events: ReplyEvent[], from: number): ReplyEvent[] {
    let passed = events;
    for (let at = from; at < machines.length && passed.length > 0; at++) passed = through(machines[at], passed);
    return passed;
  }

  function cut(events: ReplyEvent[]): ReplyEvent[] {
    const last = events.findIndex(isLast);
    if (last < 0) return events;
    over = true;
    return events.slice(0, last + 1);
  }

  return {
    push: (event) => over ? [] : cut(run([event], 0)),
    end: () => over ? [] : cut(machines.flatMap((machine, index) => run(machine.end(), index + 1))),
  };
}

function through(machine: Machine<ReplyEvent, ReplyEvent> | undefined, events: ReplyEvent[]): ReplyEvent[] {
  if (machine === undefined) return events;
  const [event] = events;
  // Usually there is one event.
  if (events.length === 1 && event !== undefined) return machine.push(event);
  return events.flatMap((event) => machine.push(event));
}

function isLast({ type }: ReplyEvent): boolean {
  return type === "finish" || type === "error";
}
