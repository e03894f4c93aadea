/** Where the clusters are on the map: around this one, or below it where there is no room. Pure. */
export interface Point {
  x: number;
  y: number;
}

export interface MapLayout {
  width: number;
  height: number;
  isNarrow: boolean;
  card: { width: number; height: number };
  own: Point;
  others: Point[];
}

const NARROW = 560;

/** `width` in CSS pixels, so that text on the map is as large as everywhere else. */
export function layoutOf(width: number, count: number): MapLayout {
  if (width < NARROW) return below(width, count);
  const heights = [count <= 2 ? 300 : count <= 6 ? 440 : 520, 600, 680];
  return heights.map((height) => around(width, height, count)).find(hasRoom) ?? below(width, count);
}

/** No two cards lie on each other. */
function hasRoom({ own, others, card }: MapLayout): boolean {
  const all = [own, ...others];
  return !all.some((a, index) =>
    all
      .slice(index + 1)
      .some((b) => Math.abs(a.x - b.x) < card.width + 6 && Math.abs(a.y - b.y) < card.height + 6),
  );
}

/** Points are the centres of cards. */
function around(width: number, height: number, count: number): MapLayout {
  const card = count > 8 ? { width: 138, height: 56 } : { width: 172, height: 64 };
  const own = { x: width / 2, y: height / 2 };
  const rx = Math.min(width / 2 - card.width / 2 - 8, 430);
  const ry = height / 2 - card.height / 2 - 10;
  // One is beside us, two are on both sides, more begin at the top.
  const first = count <= 2 ? 0 : -Math.PI / 2;
  const others = Array.from({ length: count }, (_, index) => {
    const angle = first + (index * 2 * Math.PI) / count;
    return { x: own.x + rx * Math.cos(angle), y: own.y + ry * Math.sin(angle) };
  });
  return { width, height, isNarrow: false, card, own, others };
}

function below(width: number, count: number): MapLayout {
  const card = { width: Math.min(210, width - 84), height: 64 };
  const own = { x: Math.min(card.width / 2 + 4, width / 2), y: card.height / 2 + 6 };
  const step = card.height + 18;
  const others = Array.from({ length: count }, (_, index) => ({
    x: width - card.width / 2 - 4,
    y: own.y + (index + 1) * step + 14,
  }));
  const height = own.y + count * step + card.height / 2 + 28;
  return { width, height, isNarrow: true, card, own, others };
}

/** A line between two cards; `bend` moves it aside, so that the two directions of a peering are two lines. */
export function lineBetween(layout: MapLayout, to: Point, bend: number): { path: string; middle: Point } {
  const { own, card, isNarrow } = layout;
  if (isNarrow) {
    const x = own.x - card.width / 2 + 26 + bend;
    const from = own.y + card.height / 2;
    const [end, y] = [to.x - card.width / 2, to.y + bend];
    const path = `M${x} ${from} V${y - 12} Q${x} ${y} ${x + 12} ${y} H${end}`;
    return { path, middle: { x: (x + 12 + end) / 2, y } };
  }
  const [dx, dy] = [to.x - own.x, to.y - own.y];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [(-dy / length) * bend, (dx / length) * bend];
  const [ax, ay] = [own.x + nx, own.y + ny];
  const [bx, by] = [to.x + nx, to.y + ny];
  const middle = { x: (own.x + to.x) / 2 + nx, y: (own.y + to.y) / 2 + ny };
  return { path: `M${ax} ${ay} Q${middle.x + nx * 1.6} ${middle.y + ny * 1.6} ${bx} ${by}`, middle };
}
