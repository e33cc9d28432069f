/** Which target goes first. Pure: the random numbers are handed in. */
import type { Target } from "../catalog/model.ts";

/**
 * The order in which targets are tried: by priority, lower first; among equals by chance, each in proportion to its
 * weight. A target of weight 0 goes after every other of its priority.
 * @param random numbers from 0 up to, not including, 1
 */
export function planTargets(targets: readonly Target[], random: () => number): Target[] {
  const byPriority = Map.groupBy(targets, (target) => target.priority);
  return [...byPriority.keys()].sort((a, b) => a - b).flatMap((priority) =>
    shuffle(byPriority.get(priority) ?? [], random)
  );
}

/** Draws without putting back. */
function shuffle(targets: readonly Target[], random: () => number): Target[] {
  const left = [...targets];
  const order: Target[] = [];
  while (left.length > 0) {
    const total = left.reduce((sum, { weight }) => sum + weight, 0);
    let point = random() * total;
    const drawn = left.findIndex(({ weight }) => (point -= weight) < 0);
    order.push(...left.splice(Math.max(0, drawn), 1));
  }
  return order;
}
