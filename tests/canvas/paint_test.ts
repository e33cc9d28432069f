import { assertEquals, assertGreater } from "@std/assert";
import { paint } from "../../lib/canvas/paint.ts";
import { skipInQuick } from "../support/skip.ts";

const SMALL = { width: 96, height: 64 };

Deno.test("paint() fills the image with several colours for every scene and proportion", () => {
  const prompts = [
    "snowy mountains",
    "the sea at night",
    "a city in the rain",
    "a foggy forest",
    "desert",
    "flowers in a meadow, a tree and a house",
    "a planet and a rocket",
    "abstract",
    "portrait of a queen",
    "a cat, a fish, a heart and a balloon",
    "a lighthouse and birds on a beach, rainbow",
    "",
    "我喜欢猫",
    "\u0000 constructor __proto__ toString",
  ];
  const seen = new Set<string>();
  const sizes = [SMALL, { width: 40, height: 120 }];
  const isQuick = skipInQuick("Each scene of the canvas in two proportions");
  for (const [index, prompt] of prompts.entries()) {
    for (const size of isQuick ? sizes.slice(index % 2).slice(0, 1) : sizes) {
      const { data } = paint({ prompt, size, index: 0 });
      const colors = new Set<number>();
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] !== 255) throw new Error(`${prompt}: byte ${at + 3} is ${data[at + 3]}`);
        colors.add((data[at] ?? 0) << 16 | (data[at + 1] ?? 0) << 8 | (data[at + 2] ?? 0));
      }
      assertGreater(colors.size, 200, prompt);
      seen.add(data.join());
    }
  }
  assertEquals(seen.size, prompts.length * (isQuick ? 1 : 2));
});

Deno.test("paint() uses colours named in the prompt", () => {
  const mean = (prompt: string) => {
    const { data } = paint({ prompt, size: SMALL, index: 0 });
    const sums = [0, 0, 0];
    for (let at = 0; at < data.length; at++) if (at % 4 < 3) sums[at % 4] = (sums[at % 4] ?? 0) + (data[at] ?? 0);
    return sums as [number, number, number];
  };
  const [redOfRed, , blueOfRed] = mean("a red sky over mountains");
  const [redOfBlue, , blueOfBlue] = mean("a blue sky over mountains");
  const [redOfGreen, greenOfGreen] = mean("a green sky over mountains");
  assertGreater(redOfRed, blueOfRed * 1.15);
  assertGreater(blueOfBlue, redOfBlue * 1.15);
  assertGreater(greenOfGreen, redOfGreen * 1.1);
});
