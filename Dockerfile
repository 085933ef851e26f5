# The service: docker build -t pseudomallows . && docker run -p 8000:8000 -v $PWD/data:/data -e PSEUDOMALLOWS_TOKEN=... pseudomallows
# It answers from data/model.pm (`pseudomallows fit CLICKS --out data/model.pm`) and keeps clicks in data/clicks.sqlite.
FROM python:3.12-slim
COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[web]" && rm -r /source \
    && useradd --create-home --uid 1000 service && mkdir /data && chown service /data
USER service
ENV NUMBA_CACHE_DIR=/home/service/kernels
RUN pseudomallows prepare --quiet
VOLUME /data
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
ENTRYPOINT ["pseudomallows", "serve", "model.pm", "--host", "0.0.0.0"]
