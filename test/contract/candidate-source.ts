import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Candidate, CandidateSource } from '../../src/discovery/candidates.ts';
import { eventually } from '../support/eventually.ts';

/** What a cluster says of itself, in the words of all sources. */
export interface Announced {
  clusterID: string;
  /** An address that can be dialled; neither loopback nor link-local. */
  address: string;
  port: number;
  clusterName?: string;
  protocols?: readonly number[];
}

/** One source, running, in a world of its own in which clusters can be made to appear. */
export interface CandidateSourceWorld {
  readonly source: CandidateSource;
  /** The cluster that the source belongs to. */
  readonly ownClusterID: string;
  /** It is announced from now on; or what is said of it is this from now on. */
  announce(announced: Announced): Promise<void>;
  /** It takes itself back, in order. */
  withdraw(clusterID: string): Promise<void>;
  /**
   * Nothing is heard any more of any cluster, and the time for which that is borne passes. Never called where the
   * source does not expire.
   */
  fallSilent(): Promise<void>;
  /** Something is announced under this label that is no cluster of ours: no ID, no port, nonsense. */
  announceNonsense(label: string): Promise<void>;
  /** Ends source and world; called once after each test. */
  stop(): Promise<void>;
}

export interface CandidateSourceContract {
  /** Makes a fresh world with a source that has been started. */
  makeWorld: () => Promise<CandidateSourceWorld>;
  /** Whether it carries names and protocol versions. */
  carriesDetails: boolean;
  /** Whether what is not heard of any more expires. */
  expires: boolean;
  /** Longest time until a change of the world must be seen. */
  deadlineMs?: number;
}

const ID = { milan: 'milan'.padEnd(26, 'a'), rome: 'rome'.padEnd(26, 'b'), turin: 'turin'.padEnd(26, 'c') };
const milan: Announced = {
  clusterID: ID.milan,
  address: '10.1.0.1',
  port: 6443,
  clusterName: 'Milan',
  protocols: [1, 2],
};
const MANY = 20;

/** What every CandidateSource must do, whichever way it finds clusters. */
export function describeCandidateSource({
  makeWorld,
  carriesDetails,
  expires,
  deadlineMs,
}: CandidateSourceContract): void {
  let world: CandidateSourceWorld;
  /** ClusterIDs, in the order in which they were told. */
  let told: string[];
  beforeEach(async () => {
    world = await makeWorld();
    told = [];
    world.source.onChange((clusterID) => told.push(clusterID));
  });
  afterEach(async () => world.stop());

  const seen = (clusterID: string): Candidate | undefined =>
    [...world.source.candidates()].find((one) => one.clusterID === clusterID);
  const until = async (what: string, condition: () => boolean): Promise<void> =>
    eventually(what, condition, deadlineMs);
  const announceMilan = async (): Promise<Candidate> => {
    await world.announce(milan);
    await until('milan is seen', () => seen(ID.milan) !== undefined);
    return seen(ID.milan) as Candidate;
  };

  test('nothing is seen where nothing is announced', () => {
    expect([...world.source.candidates()]).toEqual([]);
  });

  test('a cluster that is announced is a candidate, and is told', async () => {
    const candidate = await announceMilan();
    expect(candidate.endpoints).toEqual(['10.1.0.1:6443']);
    expect(candidate.clusterName).toBe(carriesDetails ? 'Milan' : undefined);
    expect(candidate.protocols).toEqual(carriesDetails ? [1, 2] : []);
    expect(told).toContain(ID.milan);
  });

  test('what changes in an announcement changes in the candidate, and is told', async () => {
    await announceMilan();
    told.length = 0;
    await world.announce({ ...milan, address: '10.1.0.2', port: 7443 });
    await until('the new endpoint', () => seen(ID.milan)?.endpoints.join() === '10.1.0.2:7443');
    expect(told).toContain(ID.milan);
  });

  test('a cluster that takes itself back is gone, and is told', async () => {
    await announceMilan();
    told.length = 0;
    await world.withdraw(ID.milan);
    await until('milan is gone', () => seen(ID.milan) === undefined);
    expect(told).toContain(ID.milan);
  });

  test('a cluster that comes again is seen again', async () => {
    await announceMilan();
    await world.withdraw(ID.milan);
    await until('milan is gone', () => seen(ID.milan) === undefined);
    expect((await announceMilan()).endpoints).toEqual(['10.1.0.1:6443']);
  });

  test('many clusters are seen, each once, and the end of one is no matter of the others', async () => {
    const ids = Array.from({ length: MANY }, (_, index) =>
      `many${'abcdefghijklmnopqrstuvwxyz'[index]}`.padEnd(26, 'q'),
    );
    for (const [index, clusterID] of ids.entries()) {
      await world.announce({
        clusterID,
        address: `10.2.0.${index + 1}`,
        port: 6443,
        clusterName: clusterID,
        protocols: [1],
      });
    }
    const listed = (): string[] =>
      [...world.source.candidates()].map(({ clusterID }) => clusterID).toSorted();
    await until('all are seen', () => listed().length === MANY);
    expect(listed()).toEqual(ids);
    await world.withdraw(ids[3] as string);
    await until('one is gone', () => listed().length < MANY);
    expect(listed()).toEqual(ids.toSpliced(3, 1));
  });

  test('the cluster that we are is no candidate', async () => {
    await world.announce({ ...milan, clusterID: world.ownClusterID });
    await announceMilan();
    expect([...world.source.candidates()].map(({ clusterID }) => clusterID)).toEqual([ID.milan]);
    expect(told).not.toContain(world.ownClusterID);
  });

  test('another cluster at our address is not us', async () => {
    await world.announce({ ...milan, clusterID: world.ownClusterID });
    await announceMilan();
    await world.announce({ ...milan, clusterID: ID.rome, clusterName: 'Rome' });
    await until('both are seen', () => seen(ID.rome) !== undefined && seen(ID.milan) !== undefined);
  });

  test('the same announcement again is no news', async () => {
    await announceMilan();
    told.length = 0;
    await world.announce(milan);
    // By the time that another one is seen, the repeated one has been.
    await world.announce({ ...milan, clusterID: ID.rome, address: '10.1.0.3' });
    await until('rome is seen', () => seen(ID.rome) !== undefined);
    expect(told).not.toContain(ID.milan);
  });

  test('who no longer listens is told nothing', async () => {
    const deaf: string[] = [];
    world.source.onChange((clusterID) => deaf.push(clusterID))();
    await announceMilan();
    expect(deaf).toEqual([]);
  });

  test('nonsense is passed over, and harms nobody', async () => {
    await world.announceNonsense('first');
    await announceMilan();
    await world.announceNonsense('zweite');
    await world.announce({ ...milan, clusterID: ID.rome, address: '10.1.0.3' });
    await until('rome is seen', () => seen(ID.rome) !== undefined);
    expect([...world.source.candidates()].map(({ clusterID }) => clusterID).toSorted()).toEqual([
      ID.milan,
      ID.rome,
    ]);
  });

  if (!expires) {
    test('a cluster stays until it is taken back', async () => {
      expect((await announceMilan()).expiresAt).toBe(Infinity);
    });
    return;
  }

  test('clusters of which nothing is heard any more expire, and are told', async () => {
    const { expiresAt } = await announceMilan();
    expect(expiresAt).toBeLessThan(Infinity);
    told.length = 0;
    await world.fallSilent();
    await until('milan has expired', () => seen(ID.milan) === undefined && told.includes(ID.milan));
  });
}
