import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Basics } from '../lib/basics.ts';
import { errorMessage } from '../lib/errors.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import { Variable } from '../lib/source.ts';
import type { KeyPair, Source } from '../lib/source.ts';

interface CertificateFilesOptions extends Basics {
  certificatePath: string;
  keyPath: string;
  /** Told when the certificate ends, milliseconds since 1970, whenever it is another one. */
  changed?: (state: { expiresMs: number }) => void;
}

/** Mounted Secrets change by a swap of symbolic links, which no file watcher reports reliably. */
const REREAD_MS = 30_000;

/** A serving certificate that somebody else keeps fresh in two files. */
export class CertificateFiles implements Component, Source<KeyPair> {
  readonly name = 'certificate files';
  readonly #options: CertificateFilesOptions;
  readonly #pair = new Variable<KeyPair>({ certificate: '', key: '' });
  readonly subscribe: Variable<KeyPair>['subscribe'] = this.#pair.subscribe;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  current(): KeyPair {
    return this.#pair.current();
  }

  /** Fails when the files are not a certificate and its key. */
  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#use(await this.#read());
    this.#background.run(async (signal) => this.#run(signal));
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    for (;;) {
      await clock.sleep(REREAD_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const pair = await this.#read();
        const { certificate, key } = this.current();
        if (pair.certificate !== certificate || pair.key !== key) this.#use(pair);
      } catch (error) {
        log.warn('cannot read the serving certificate again', { error: errorMessage(error) });
      }
    }
  }

  #use(pair: KeyPair): void {
    this.#pair.set(pair);
    this.#options.changed?.({ expiresMs: new X509Certificate(pair.certificate).validToDate.getTime() });
  }

  async #read(): Promise<KeyPair> {
    const { certificatePath, keyPath } = this.#options;
    // One after the other: where both are missing, it is always the certificate that is named.
    const certificate = await readFile(certificatePath, 'utf8');
    const key = await readFile(keyPath, 'utf8');
    // Between two writes the files may not belong together.
    if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) {
      throw new Error(`${keyPath} is not the key of ${certificatePath}`);
    }
    return { certificate, key };
  }
}
