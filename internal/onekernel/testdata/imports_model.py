from dropping import Model


class ModelNew(Model):
    pass
