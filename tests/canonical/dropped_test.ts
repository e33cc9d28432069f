import { assertEquals } from "@std/assert";
import { Dropped } from "../../lib/canonical/dropped.ts";

Deno.test("Dropped names each parameter once, in the order they were noted", () => {
  const dropped = new Dropped();
  assertEquals(dropped.names, []);
  for (const name of ["top_k", "seed", "top_k"]) dropped.add(name);
  assertEquals(dropped.names, ["top_k", "seed"]);
});
