import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { ImageCutter } from "../../../lib/upstreams/openai_images/cut_images.ts";
import type { ImageEvent } from "../../../lib/images/types.ts";
import { watchTurns, workedMs } from "../../support/turns.ts";
import { cut, events, eventText, failure, images, overEach, PNG, png, readAll, startHost } from "./host.ts";

overEach("A whole answer's images come in its order, whatever else is in it", async () => {
  const image = (index: number, about: string): ImageEvent => ({
    type: "image",
    index,
    base64: png(index === 1 && about === "escapes" ? 255 : index),
  });
  const escaped = png(255).replaceAll("/", "\\/").replaceAll("+", "\\u002B").replaceAll("=", "\\u003d");
  const cases: [about: string, text: string, images: number][] = [
    ["plain", `{"created":1,"data":[{"b64_json":"${png(0)}"},{"b64_json":"${png(1)}"}]}`, 2],
    ["escapes", `{"data":[{"b64_json":"${png(0)}"},{"b64_json":"${escaped}"}]}`, 2],
    ["no padding", `{"data":[{"b64_json":"${png(0).replace(/=+$/, "")}"}]}`, 1],
    ["line breaks", `{"data":[{"b64_json":"${png(0).replaceAll(/(.{20})/g, "$1\\r\\n")}"}]}`, 1],
    [
      "members beside it",
      ` {"b64_json":null,"note":"\\"b64_json\\":\\"no\\" ü","data" :\n[ {"revised_prompt":"{[ü \\\\","x":"b64_json",` +
      `"b64_json" : "${png(0)}","y":[1]} ],"usage":{"total_tokens":7}}`,
      1,
    ],
    [
      "images that are not of the answer",
      `{"b64_json":"${png(7)}","input":[{"b64_json":"${png(8)}"}],"data":[{"mask":{"b64_json":"${png(9)}"},` +
      `"b64_json":"${png(0)}"}]}`,
      1,
    ],
  ];
  for (const [about, text, n] of cases) {
    for (const size of [1, 2, 3, 7, 64, 100_000]) {
      const bytes = new TextEncoder().encode(text);
      await using host = startHost(() => new Response(inPieces(bytes, size)));
      const all = await readAll(await host.create({ n }).feed);
      assertEquals(all, Array.from({ length: n }, (_, index) => image(index, about)), `${about}, ${size}`);
    }
  }
});

Deno.test("A text cut at any place gives the same images and the same rest", () => {
  const text = '{"a":"\\"","data":[{"b64_json":"QUJD","index":1},{"b64_json":""},{"url":"u"}],"z":["b64_json",null]}';
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const cutter = new ImageCutter("answer");
      const parts = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      const raw = parts.flatMap((part) => cutter.push(part)).map((pieces) => pieces.join(""));
      assertEquals(raw, ["QUJD", ""]);
      assertEquals(cutter.end(), {
        a: '"',
        data: [{ b64_json: "0", index: 1 }, { b64_json: "1" }, { url: "u" }],
        z: ["b64_json", null],
      });
    }
  }
});

overEach("A stream's previews and images are passed on", async () => {
  const partial = (base64: string, more: object) => ({
    type: "image_generation.partial_image",
    b64_json: base64,
    size: "1024x1024",
    ...more,
  });
  const completed = (base64: string, more: object = {}) => ({
    type: "image_generation.completed",
    b64_json: base64,
    usage: { total_tokens: 9 },
    ...more,
  });
  const cases: [about: string, n: number, answer: () => Response, expected: ImageEvent[]][] = [
    [
      "previews, then the image, then nothing is read",
      1,
      () =>
        events(
          { type: "image_generation.started" },
          partial(png(1), { partial_image_index: 0 }),
          partial(png(2), { partial_image_index: 1 }),
          completed(png(3)),
          { error: { message: "too late" } },
        ),
      [
        { type: "partial", index: 0, step: 0, base64: png(1) },
        { type: "partial", index: 0, step: 1, base64: png(2) },
        { type: "image", index: 0, base64: png(3) },
      ],
    ],
    ["edits", 1, () => events({ type: "image_edit.completed", b64_json: png(3) }), [
      { type: "image", index: 0, base64: png(3) },
    ]],
    ["no index: the order decides", 2, () => events(completed(png(1)), completed(png(2))), [
      { type: "image", index: 0, base64: png(1) },
      { type: "image", index: 1, base64: png(2) },
    ]],
    [
      "an index, and previews that have one",
      2,
      () => events(partial(png(9), { index: 1 }), completed(png(2), { index: 1 }), completed(png(1), { index: 0 })),
      [
        { type: "partial", index: 1, step: 0, base64: png(9) },
        { type: "image", index: 1, base64: png(2) },
        { type: "image", index: 0, base64: png(1) },
      ],
    ],
    ["the same index twice", 2, () => events(completed(png(1), { index: 0 }), completed(png(2), { index: 0 })), [
      { type: "image", index: 0, base64: png(1) },
      { type: "image", index: 1, base64: png(2) },
    ]],
    ["names by the event, [DONE] and comments", 1, () =>
      eventText(
        `: hello\r\n\r\nevent: image_generation.completed\r\ndata: {"b64_json":"${
          png(1)
        }"}\r\n\r\ndata: [DONE]\r\n\r\n`,
      ), [{ type: "image", index: 0, base64: png(1) }]],
    ["a preview that cannot be read", 1, () => events(partial("%%", {}), completed(png(1))), [
      { type: "image", index: 0, base64: png(1) },
    ]],
    [
      "images that are not of the event",
      1,
      () => events({ input: { b64_json: png(9) }, ...completed(png(1)) }),
      [{ type: "image", index: 0, base64: png(1) }],
    ],
    ["a whole answer instead", 2, () => images(png(1), png(2)), [
      { type: "image", index: 0, base64: png(1) },
      { type: "image", index: 1, base64: png(2) },
    ]],
  ];
  for (const [about, n, answer, expected] of cases) {
    await using host = startHost(answer);
    assertEquals(await readAll(await host.create({ n, stream: true }).feed), expected, about);
  }
});

overEach("An answer without its images fails as a whole, for good", async () => {
  const cases: [about: string, answer: () => Response, message: string][] = [
    ["cut off in an image", () => cut(`{"data":[{"b64_json":"${PNG.slice(0, 30)}`), "broke off"],
    ["ends in an image", () => new Response(`{"data":[{"b64_json":"${PNG}`), "expected JSON"],
    ["no JSON", () => new Response("<html>Bad gateway</html>"), "expected JSON"],
    ["nothing", () => new Response(""), "expected JSON"],
    ["a list", () => Response.json([]), "expected a JSON object"],
    ["no images", () => Response.json({ data: [] }), "made 0 of 1 images"],
    ["addresses", () => Response.json({ data: [{ url: "http://10.0.0.1/a.png" }] }), "URLs instead of images"],
    ["a failure inside", () => Response.json({ error: { message: "no", type: "server_error" } }), "failed"],
    ["an empty stream", () => eventText(""), "made 0 of 1 images"],
    ["a cut stream", () =>
      cut(`data: {"type":"image_generation.completed","b64_json":"`, {
        "content-type": "text/event-stream",
      }), "broke off"],
    ["no JSON in an event", () => eventText("data: nope\n\n"), "expected JSON"],
    ["an error event", () => events({ type: "error", error: { message: "no", code: "server_error" } }), "failed"],
  ];
  for (const [about, answer, message] of cases) {
    await using host = startHost(answer);
    const error = await failure(host.create({ stream: true }).feed.then(readAll));
    assertEquals([error.kind, error.final], ["upstream", true], about);
    assertStringIncludes(error.message, message, about);
    assert(!error.message.includes("10.0.0.1"), about);
  }
});

overEach("What is no image fails by itself", async () => {
  const gif = btoa("GIF89a\x01\0\x01\0\0\0\0;");
  const cases = ["", "%%%%", "QUJD", PNG.slice(0, -1) + "%", PNG.slice(0, 41), `${PNG}QUJD`, gif, `${PNG}\\"`];
  for (const bad of cases) {
    await using host = startHost(() =>
      new Response(`{"data":[{"b64_json":"${bad}"},{"b64_json":"${PNG}"}]}`.replace('\\""}', '\\"'))
    );
    const [first, ...others] = await readAll(await host.create({ n: 2 }).feed);
    assert(first?.type === "failed", bad);
    assertEquals([first.index, first.error.kind, first.error.final], [0, "upstream", true], bad);
    assertEquals(others.length, 1, bad);
  }
});

overEach("Images that came before an answer broke off are kept, the others fail", async () => {
  const answers: (() => Response)[] = [
    () => cut(`{"data":[{"b64_json":"${png(1)}"},{"b64_json":"${PNG.slice(0, 20)}`),
    () => images(png(1)),
    () => Response.json({ data: [{ b64_json: png(1) }, { url: "https://example.com/" }] }),
    () => events({ type: "image_edit.completed", b64_json: png(1) }, { error: { message: "no" } }),
  ];
  for (const answer of answers) {
    await using host = startHost(answer);
    const all = await readAll(await host.create({ n: 3 }).feed);
    assertEquals(all[0], { type: "image", index: 0, base64: png(1) });
    assertEquals(all.slice(1).map(({ type, index }) => [type, index]), [["failed", 1], ["failed", 2]]);
    for (const event of all.slice(1)) assert(event.type === "failed" && event.error.final);
  }
});

overEach("An image of many megabytes, whole or streamed, leaves the event loop to others", async () => {
  const big = new Uint8Array(6_000_000);
  big.set(Uint8Array.from(atob(PNG), (letter) => letter.charCodeAt(0)));
  const noise = Uint8Array.from({ length: 3_001 }, (_, at) => at * 31 >> 3);
  for (let at = 64; at + noise.length < big.length; at += noise.length) big.set(noise, at);
  const base64 = big.toBase64();
  const encoder = new TextEncoder();
  for (const stream of [false, true]) {
    const answer = encoder.encode(
      stream
        ? `data: {"type":"image_generation.completed","b64_json":"${base64}"}\n\n`
        : `{"data":[{"b64_json":"${base64}"}]}`,
    );
    const headers = { "content-type": stream ? "text/event-stream" : "application/json" };
    await using host = startHost(() => new Response(inPieces(answer, 64 * 1024), { headers }));
    const feed = await host.create({ stream }).feed;
    using turns = watchTurns();
    const begun = workedMs();
    const [event, ...others] = await readAll(feed);
    const [count, longest, all] = [turns.count(), turns.longestWork(), workedMs() - begun];
    assert(event?.type === "image" && event.base64 === base64);
    assertEquals(others, []);
    // Read at once, it would be a few turns, and one of them would be almost all of the work.
    assert(count >= 5 && longest < all / 2, `${count} turns, the longest worked ${longest} ms of ${all}`);
  }
});

function inPieces(bytes: Uint8Array<ArrayBuffer>, size: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

Deno.test("A long event without an image is refused before all of it is read", () => {
  const event = `{"type":"${"x".repeat(100_000_000)}`;
  const started = workedMs();
  assertThrows(() => new ImageCutter("answer").push(event), GatewayError, "too long");
  assert(workedMs() - started < 700);
});
