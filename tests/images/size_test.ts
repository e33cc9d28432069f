import { assert, assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { brokenRules, fittingSize, isValidSize, nearestSize, readSize, sizeText } from "../../lib/images/size.ts";
import type { Size } from "../../lib/images/types.ts";
import { seeded } from "../support/random.ts";

/** The rules, implemented independently: integers only, one condition per rule. */
function obeys(width: number, height: number): boolean {
  const [short = 0, long = 0] = [width, height].sort((a, b) => a - b);
  return (width & 15) === 0 && (height & 15) === 0 && long <= 3840 && short * 3 >= long &&
    short * long >= 655_360 && short * long <= 8_294_400;
}

Deno.test("isValidSize() agrees with the rules on every multiple of 16 up to 4096, and near them", () => {
  let valid = 0;
  for (let width = 16; width <= 4096; width += 16) {
    for (let height = 16; height <= 4096; height += 16) {
      const expected = obeys(width, height);
      if (expected) valid++;
      if (isValidSize({ width, height }) !== expected) throw new Error(`Expected ${expected} for ${width}x${height}`);
    }
  }
  assert(valid > 10_000);
  for (const off of [1, 8, 15]) {
    assert(!isValidSize({ width: 1024 + off, height: 1024 }));
    assert(!isValidSize({ width: 1024, height: 1024 - off }));
  }
});

Deno.test("readSize() accepts the common sizes", () => {
  const common = "1024x1024 1536x1024 1024x1536 2048x2048 2560x1440 3840x2160 2160x3840 2880x2880 1920x1088 1440x480";
  for (const text of common.split(" ")) assertEquals(sizeText(readSize(text) ?? { width: 0, height: 0 }), text);
  assertEquals(readSize("auto"), undefined);
});

const REFUSED: readonly [size: string, rules: RegExp[], nearest: string][] = [
  ["1920x1080", [/height must be a multiple of 16 \(1080 is not\)/], "1920x1088"],
  ["1000x1000", [/width must be a multiple of 16/, /height must be a multiple of 16/], "1008x1008"],
  ["256x256", [/from 655,360 to 8,294,400 pixels \(it is 65,536\)/], "816x816"],
  ["3840x2176", [/pixels \(it is 8,355,840\)/], "3840x2160"],
  ["512x512", [/pixels \(it is 262,144\)/], "816x816"],
  ["3856x1600", [/the longest side must be at most 3840 \(it is 3856\)/], "3840x1600"],
  ["3840x1264", [/the aspect ratio must be between 1:3 and 3:1/], "3840x1280"],
  ["1024x3088", [/the aspect ratio must be between 1:3 and 3:1/], "1040x3088"],
  ["2896x2896", [/pixels \(it is 8,386,816\)/], "2880x2880"],
  ["8000x4000", [/longest side/, /pixels/], "3840x2160"],
  ["100x1", [/width must/, /height must/, /aspect ratio/, /pixels/], "864x768"],
];

for (const [size, rules, nearest] of REFUSED) {
  Deno.test(`size ${size} is rejected with the violated rules and the nearest valid size`, () => {
    const error = assertThrows(() => readSize(size), GatewayError);
    assertEquals([error.kind, error.param], ["invalid", "size"]);
    for (const rule of rules) assert(rule.test(error.message), error.message);
    assertEquals(error.message.split("; ").length, rules.length, error.message);
    assert(error.message.endsWith(`The nearest valid size is ${nearest}`), error.message);
  });
}

Deno.test("a malformed size is rejected with the expected format", () => {
  for (
    const text of ["", "big", "1024", "1024X1024", "1024×1024", "1024x", "x1024", "01024x1024", "1024x1024 ", "0x0"]
      .concat("-16x16", "1e3x1024", "1024.0x1024", "9999999x1024")
  ) {
    const error = assertThrows(() => readSize(text), GatewayError);
    assert(error.message.includes('expected "auto" or "<width>x<height>"'), text);
  }
});

Deno.test("nearestSize() is the one that a look at every valid size finds", () => {
  const valid: Size[] = [];
  for (let width = 16; width <= 3840; width += 16) {
    for (let height = 16; height <= 3840; height += 16) if (obeys(width, height)) valid.push({ width, height });
  }
  const { below } = seeded(11);
  const sizes: Size[] = [[1, 1], [999_999, 1], [1, 999_999], [999_999, 999_999], [3840, 2176], [1000, 1000], [
    1920,
    1080,
  ]]
    .map(([width = 0, height = 0]) => ({ width, height }));
  for (let round = 0; round < 150; round++) {
    const most = [1000, 4000, 9000][round % 3] ?? 1000;
    // Multiples of 8 are often as near to one size as to another.
    const step = round % 2 === 0 ? 1 : 8;
    const [width, height] = [step * (1 + below(most / step)), step * (1 + below(most / step))];
    sizes.push({ width, height }, { width: height, height: width });
  }
  for (const { width, height } of sizes) {
    let nearest = valid[0] ?? { width: 0, height: 0 };
    const distanceTo = (size: Size) => (size.width - width) ** 2 + (size.height - height) ** 2;
    let least = distanceTo(nearest);
    for (const size of valid) {
      const distance = distanceTo(size);
      if (distance > least) continue;
      const more = size.width * size.height - nearest.width * nearest.height;
      if (distance === least && (more < 0 || (more === 0 && size.width < nearest.width))) continue;
      [nearest, least] = [size, distance];
    }
    assertEquals(nearestSize({ width, height }), nearest, `${width}x${height}`);
  }
  for (let round = 0; round < 200; round++) {
    const size = valid[below(valid.length)] ?? { width: 0, height: 0 };
    assertEquals(nearestSize(size), size);
  }
});

Deno.test("fittingSize() is valid, is itself for valid sizes, and is near in aspect ratio and area", () => {
  const { below } = seeded(7);
  for (let round = 0; round < 1500; round++) {
    const most = [100, 1500, 4500, 20_000][round % 4] ?? 100;
    const size: Size = { width: 1 + below(most), height: 1 + below(most) };
    const fitting = fittingSize(size);
    const what = `${sizeText(size)} -> ${sizeText(fitting)}`;
    assertEquals(brokenRules(fitting), [], what);
    assertEquals(fittingSize(fitting), fitting, what);
    // The requested size, brought within the rules; both sides then change by a step or two at most.
    const ratio = Math.min(3, Math.max(1 / 3, size.width / size.height));
    assert(Math.abs(Math.log(fitting.width / fitting.height / ratio)) < 0.05, what);
    const pixels = Math.min(size.width * size.height, 8_294_400, 3840 * 3840 / Math.max(ratio, 1 / ratio));
    assert(Math.abs(Math.log(fitting.width * fitting.height / Math.max(655_360, pixels))) < 0.05, what);
  }
});
